"""Everything that pytest needs to judge backends is a plugin, so that other repositories can use it too."""

pytest_plugins = ["harness.pytest_plugin.plugin"]
