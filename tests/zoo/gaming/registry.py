"""Every attack of this folder, by what it tries."""

from __future__ import annotations

from tests.zoo.gaming.attack import (
    ALONE,
    CAUGHT,
    COMMAND_LINE,
    ENDS,
    FOLDER,
    GPU,
    HANGS,
    HARMLESS,
    IN_A_COPY,
    ISOLATED,
    LIMIT,
    READ,
    RESTARTED,
    RIGHT,
    VALUE,
    Attack,
)

#: `new_h was`, with a number, is how a wrong value is told.
_OFF = "new_(h|cell) was"
_READ_ONLY = "In bubblewrap it can write to its scratch folder alone."
_OWN_PROCESS = "It changes only its own process, and values are compared in another one."
#: Seconds for what would never end.
_SHORT = 5.0

ANSWERS = (
    Attack("zeros", "forward-parity", CAUGHT, _OFF),
    Attack("constant", "forward-parity", CAUGHT, _OFF),
    Attack("nan_everywhere", "forward-parity", CAUGHT, "NaN or infinite where the exact value is finite"),
    Attack("input_passed_through", "forward-parity", CAUGHT, _OFF),
    Attack("stale_memory", "forward-parity", CAUGHT, _OFF),
    Attack("first_rows_only", "forward-parity", CAUGHT, _OFF, sizes=(16, 4, 5)),
    Attack("half_precision", "forward-parity", CAUGHT, f"{_OFF}|statistic"),
    Attack("half_precision_gradient", "vjp-parity", CAUGHT, "gradient of .* was|statistic", shown=READ),
    Attack("inputs_zeroed", "forward-parity", CAUGHT, _OFF),
    Attack("detached", "vjp-parity", CAUGHT, "gradient of .* is missing", shown=READ),
    Attack("lazy_tensor", "forward-parity", CAUGHT, "new_h was a Lazy, but should be a torch.Tensor"),
    Attack("obfuscated_exec", "forward-parity", CAUGHT, _OFF),
)

REPLAYS = (
    Attack("replay_pointer", "no-special-treatment", CAUGHT, _OFF),
    Attack("replay_last_call", "no-special-treatment", CAUGHT, _OFF),
    Attack("replay_shape", "forward-parity", CAUGHT, _OFF),
    Attack("replay_version", "forward-parity", CAUGHT, _OFF),
    Attack("replay_fingerprint", "layouts", CAUGHT, _OFF, shown=READ),
    Attack("cached_weights", "forward-parity", CAUGHT, _OFF),
    Attack(
        "keeps_parameters", "no-special-treatment", CAUGHT, f"^with weights, bias as .*Parameter: {_OFF}", shown=READ
    ),
    Attack("ring_of_buffers", "no-side-effects", CAUGHT, "new_h of an earlier call", way=ISOLATED, shown=READ),
    Attack(
        "saves_in_a_global",
        "repeated-backward",
        CAUGHT,
        "changed in place between forward and backward.* gradient of .* was",
        way=ISOLATED,
        shown=READ,
    ),
)

SOMETIMES_RIGHT = (
    Attack("right_for_five_calls", "forward-parity", CAUGHT, _OFF, calls=6),
    Attack(
        "right_for_20000_calls",
        "forward-parity",
        LIMIT,
        why="A function that is right for more calls than a run makes is judged right.",
        calls=20_001,
    ),
    Attack("wrong_at_random", "forward-parity", CAUGHT, _OFF, calls=40),
    Attack(
        "wrong_once_in_a_million",
        "forward-parity",
        LIMIT,
        why="What is wrong in fewer calls than one in some hundred is seen by luck.",
        shown=READ,
    ),
    Attack("wrong_above_state_200", "sizes", CAUGHT, _OFF, sizes=(3, 5, 201)),
    Attack("right_at_named_states", "drawn-calls", CAUGHT, _OFF, sizes=(3, 4, 2)),
    Attack("wrong_at_batches_15_to_30", "drawn-calls", CAUGHT, _OFF, sizes=(16, 4, 5)),
    Attack(
        "wrong_at_batches_18_to_30",
        "harvested-sizes",
        CAUGHT,
        _OFF,
        sizes=(18, 4, 5),
    ),
    Attack(
        "wrong_at_multiples_of_100",
        "harvested-sizes",
        CAUGHT,
        _OFF,
        sizes=(3, 4, 100),
    ),
    Attack("wrong_without_grad_mode", "inference-modes", CAUGHT, _OFF, way=ISOLATED),
    Attack("odd_in_a_thread", "no-special-treatment", CAUGHT, "new_h was a NoneType", calls=4, shown=ENDS),
    Attack("wrong_without_requires_grad", "gradient-subsets", CAUGHT, _OFF),
    Attack("wrong_for_parameters", "no-special-treatment", CAUGHT, f"Parameter: {_OFF}", shown=READ),
    Attack("wrong_with_threads", "no-special-treatment", CAUGHT, f"^with 4 threads: {_OFF}", shown=READ),
    Attack(
        "wrong_for_one_tensor_twice",
        "no-special-treatment",
        CAUGHT,
        f"^where old_cell is the same tensor as old_h: {_OFF}",
        shown=READ,
    ),
    Attack("wrong_for_non_leaves", "autograd-hooks", CAUGHT, _OFF, way=ISOLATED, shown=READ),
    Attack("wrong_at_hidden_batches", "combinations", CAUGHT, _OFF, sizes=(18, 4, 5)),
    Attack("half_precision_when_large", "sizes", CAUGHT, _OFF, shown=READ),
    Attack(
        "wrong_from_2100",
        "forward-parity",
        LIMIT,
        why="What is right at the time of the run is judged right.",
        shown=READ,
    ),
    Attack(
        "right_in_training_mode",
        "forward-parity",
        LIMIT,
        why="An instance is called as it is: its mode, and any other state that its user may set, is never changed.",
        shown=READ,
    ),
    Attack("right_at_listed_calls", "drawn-calls", CAUGHT, _OFF),
)

KNOWS_THE_CALLER = (
    Attack("right_if_the_judge_is_loaded", "forward-parity", CAUGHT, _OFF, way=ALONE),
    Attack("right_under_pytest", "forward-parity", CAUGHT, _OFF),
    Attack("right_for_its_parents", "forward-parity", CAUGHT, _OFF),
    Attack(
        "right_in_the_runner",
        "forward-parity",
        LIMIT,
        why="A function that knows this suite's runner can be right in it alone, or reply in its place.",
    ),
    Attack(
        "right_in_a_sandbox",
        "forward-parity",
        LIMIT,
        why="A function can find out that it is in a sandbox, by its process number or its folders.",
        shown=READ,
    ),
)

LOOKS_FOR_THE_ANSWER = (
    Attack("answer_from_frames", "forward-parity", CAUGHT, _OFF),
    Attack("answer_from_gc", "forward-parity", CAUGHT, _OFF),
    Attack("nan_into_all", "forward-parity", CAUGHT, "NaN or infinite", way=ALONE),
    Attack("answer_from_parents_memory", "forward-parity", CAUGHT, f"{_OFF}|NaN"),
)

#: Zeros that turn into the answer where they are read.
READ_OTHERWISE = (
    Attack("methods_on_instances", "forward-parity", CAUGHT, _OFF),
    Attack("methods_on_the_class", "forward-parity", CAUGHT, _OFF, way=ALONE),
    Attack("mode_that_answers", "forward-parity", CAUGHT, _OFF, way=ALONE, shown=READ),
    Attack("overrides_a_kernel", "inference-modes", CAUGHT, _OFF, way=ISOLATED, shown=READ),
    Attack("gradients_by_a_patch", "vjp-parity", CAUGHT, "gradient of .* was", way=ALONE, shown=READ),
)

THREADS = (
    Attack("thread_writes_later", "forward-parity", CAUGHT, _OFF, way=ALONE),
    Attack(
        "thread_spoils_later",
        "forward-parity",
        LIMIT,
        why="What happens to a result after it was compared is not seen.",
        way=ALONE,
        shown=READ,
    ),
)

#: Tensors of the caller that are not as they were.
CHANGES_ITS_INPUTS = (
    Attack("turns_requires_grad_on", "combinations", CAUGHT, "changed the requires_grad of", shown=READ),
    Attack("moves_its_inputs", "no-side-effects", CAUGHT, "changed the memory of weights", way=ISOLATED, shown=READ),
    Attack("hooks_its_inputs", "autograd-hooks", CAUGHT, "gradient of .* was 0", way=ISOLATED, shown=READ),
    Attack("writes_grads", "autograd-hooks", CAUGHT, "gradient of .* was", way=ISOLATED, shown=READ),
)

REPLACES = (
    *(
        Attack(name, "forward-parity", HARMLESS, _OFF, why=_OWN_PROCESS, way=ALONE)
        for name in (
            "patches_comparisons",
            "patches_conversions",
            "patches_random_numbers",
            "function_mode_left_on",
            "dispatch_mode_left_on",
            "patches_the_contract",
            "patches_named_as_torch",
        )
    ),
    Attack("edits_torch", "forward-parity", HARMLESS, _OFF, why=_READ_ONLY, way=ALONE),
    Attack("patches_autograd_grad", "vjp-parity", HARMLESS, _OFF, why=_OWN_PROCESS, way=ALONE),
    *(
        Attack(name, "forward-parity", HARMLESS, _OFF, why=_OWN_PROCESS)
        for name in (
            "patches_comparison_code",
            "patches_the_tally",
            "patches_the_judge",
            "patches_the_isolation",
            "poisons_the_oracle",
            "replaces_undo",
            "clears_the_trusted_table",
            "reloads_modules",
            "forges_the_commit",
            "prints_a_verdict",
        )
    ),
    Attack("changes_the_examples", "drawn-calls", HARMLESS, _OFF, why=_OWN_PROCESS),
    *(
        Attack(name, "forward-parity", HARMLESS, why="It returns right values.", shown=RIGHT)
        for name in ("fig_leaf", "silent_fall_back")
    ),
)

ENDS_THE_RUN = (
    Attack("raises_not_applicable", "forward-parity", CAUGHT, "forward raised NotApplicable", shown=ENDS),
    Attack("skips_the_test", "forward-parity", CAUGHT, "forward raised Skipped", shown=ENDS),
    Attack("unreadable_exception", "forward-parity", CAUGHT, "forward raised Odd: its message cannot be", shown=ENDS),
    Attack("message_of_100_mb", "forward-parity", CAUGHT, "forward raised ValueError: x{100}", shown=ENDS),
    Attack(
        "kind_that_forges_lines",
        "forward-parity",
        CAUGHT,
        "^forward raised ValueError ✓ values 10 of 10 hold 31 passed: x; it should return",
        shown=ENDS,
    ),
    Attack("kind_of_30_mb", "forward-parity", CAUGHT, "^forward raised K{200}: x;", shown=ENDS),
    Attack(
        "result_that_forges_lines", "forward-parity", CAUGHT, "^new_h was a T forward-parity PASSED, but", shown=READ
    ),
    Attack(
        "commands_to_ci",
        "forward-parity",
        CAUGHT,
        r"ValueError: \\x23#vso\[.* \\x23#teamcity\[.* \\uffff",
        shown=ENDS,
    ),
    Attack(
        "not_applicable_in_backward",
        "memory",
        CAUGHT,
        "backward raised NotApplicable: nothing to see; it should return gradients",
        way=ISOLATED,
        shown=READ,
    ),
    Attack("exits_in_a_call", "forward-parity", CAUGHT, "forward raised SystemExit", shown=ENDS),
    Attack("interrupts_in_a_call", "forward-parity", CAUGHT, "forward raised KeyboardInterrupt", shown=ENDS),
    *(
        Attack(name, "forward-parity", CAUGHT, says, way=ISOLATED, shown=shown, seconds=seconds)
        for name, says, shown, seconds in (
            ("leaves_in_a_call", "process exited with code 0 in forward", ENDS, 60),
            ("crashes_in_a_call", "process died of SIGSEGV in forward", ENDS, 60),
            ("hangs_in_a_call", "process was still running after", HANGS, _SHORT),
        )
    ),
    Attack(
        "leaves_in_a_second_backward",
        "double-backward",
        CAUGHT,
        "process exited with code 0 in a second differentiation",
        way=ISOLATED,
        shown=READ,
        dtype="float64",
    ),
    *(
        Attack(name, "imports", CAUGHT, f"does not import: {says}", way=ISOLATED, shown=shown, seconds=_SHORT)
        for name, says, shown in (
            ("exits_at_import", "SystemExit", ENDS),
            ("import_error_forges_lines", r"ImportError: x\n    \\x3a:set-output .*\n    ✓ .*\n    31 passed$", ENDS),
            ("interrupts_at_import", "KeyboardInterrupt", ENDS),
            ("leaves_at_import", "its process exited with code 0", ENDS),
            ("crashes_at_import", "its process died of SIGSEGV", ENDS),
            ("hangs_at_import", "its process was still running", HANGS),
            ("closes_descriptors", "its process (exited with code 1|closed its connection)", READ),
        )
    ),
    Attack("lowers_limits", "forward-parity", HARMLESS, _OFF, why=_OWN_PROCESS, way=ALONE),
    Attack("floods_its_output", "forward-parity", HARMLESS, _OFF, why="Of its output the last lines are kept."),
    Attack("floods_in_a_call", "forward-parity", HARMLESS, _OFF, why="Of its output the last lines are kept."),
    Attack("leaves_children", "forward-parity", HARMLESS, _OFF, why="They end with its process.", way=ALONE),
    Attack("memory_in_a_child", "forward-parity", CAUGHT, "took more than .* of memory", way=ISOLATED, shown=READ),
    Attack("kills_its_parents", "forward-parity", CAUGHT, f"{_OFF}|process (died|exited)", way=ISOLATED, shown=READ),
)

REPLIES = (
    Attack("replies_at_import", "imports", CAUGHT, "does not import", way=ISOLATED, shown=READ),
    Attack("replies_by_half", "forward-parity", CAUGHT, "was still running", way=ISOLATED, shown=ENDS, seconds=_SHORT),
    Attack("replies_itself", "forward-parity", CAUGHT, _OFF, way=ISOLATED, shown=ENDS),
    Attack("replies_with_integers", "forward-parity", CAUGHT, "dtype of new_h was", way=ISOLATED, shown=ENDS),
    *(
        Attack(name, "forward-parity", CAUGHT, says, why="the protocol of its process", way=ISOLATED, shown=shown)
        for name, says, shown in (
            ("replies_to_every_descriptor", "sent (a reply that does not belong|something that is no reply)", VALUE),
            ("child_replies", "sent (a reply that does not belong|something that is no reply)", VALUE),
            ("replies_twice", "sent a reply that (nobody asked for|does not belong)", ENDS),
            ("replies_without_end", f"sent a reply|{_OFF}", ENDS),
            ("replies_with_a_pickle", "sent something that is no reply", ENDS),
            ("replies_with_a_terabyte", "sent a message of 1099511627776 bytes", ENDS),
            ("replies_with_a_long_header", "sent a message of 66000[0-9]* bytes", ENDS),
            ("replies_with_infinity", "sent a reply that cannot be read .OverflowError", ENDS),
            ("replies_with_odd_fields", "sent a reply that cannot be read", ENDS),
            ("replies_with_an_odd_class", "new_h was a .*, but should be a torch.Tensor", ENDS),
            ("replies_with_deep_json", "sent something that is no reply", ENDS),
        )
    ),
)

INSIDE = (
    Attack(
        "forges_a_cell",
        "no-side-effects",
        LIMIT,
        why="Properties that run beside the function can be forged; the values are compared elsewhere.",
        way=ISOLATED,
        shown=READ,
    ),
    Attack(
        "hides_its_state",
        "global-state",
        LIMIT,
        why="Properties that run beside the function can be forged; the values are compared elsewhere.",
        way=ISOLATED,
        shown=READ,
    ),
    Attack(
        "answers_another_question",
        "no-side-effects",
        CAUGHT,
        "sent a cell that was not asked for",
        way=ISOLATED,
        shown=READ,
    ),
    Attack(
        "answers_with_odd_figures",
        "no-side-effects",
        CAUGHT,
        "sent a cell that no report can hold",
        way=ISOLATED,
        shown=READ,
    ),
    Attack("removes_the_trace", "no-side-effects", CAUGHT, "the process exited with code 1", way=ISOLATED, shown=ENDS),
)

FILES = tuple(
    Attack(name, "forward-parity", HARMLESS, _OFF, why=_READ_ONLY, way=IN_A_COPY, leaves=leaves)
    for name, leaves in (
        ("plants_sitecustomize", ("sitecustomize.py",)),
        ("edits_the_suite", ("spec/envelope.py",)),
        ("poisons_bytecode", ()),
        ("edits_results", ()),
        ("plants_a_library", ()),
        ("installs_a_package", ()),
        ("deletes_itself", ("tests/zoo/gaming/deletes_itself.py",)),
        ("rewrites_itself", ("tests/zoo/gaming/rewrites_itself.py",)),
    )
)

FROM_OUTSIDE = (
    Attack(
        "links_the_program",
        "forward-parity",
        CAUGHT,
        "process exited with code 1 in forward",
        why="the judge writes nothing where a candidate can",
        way=RESTARTED,
        shown=ENDS,
    ),
    Attack(
        "is_there_once",
        "forward-parity",
        CAUGHT,
        "process exited with code 3 in forward|is not what it was at its first import",
        why="what was there must be there again",
        way=RESTARTED,
        shown=ENDS,
    ),
    Attack(
        "spoils_its_scratch_folder",
        "forward-parity",
        CAUGHT,
        "process exited with code 3 in forward",
        why="its folders are made anew",
        way=RESTARTED,
        shown=READ,
    ),
    Attack("declares_everything", "forward-parity", CAUGHT, "not supported yet", way=COMMAND_LINE),
    Attack(
        "writes_a_report_and_leaves",
        "forward-parity",
        CAUGHT,
        "its process exited with code 0",
        why="the judge writes the report",
        way=COMMAND_LINE,
        shown=ENDS,
    ),
    Attack(
        "message_that_clears_the_screen",
        "forward-parity",
        CAUGHT,
        r"forward raised ValueError: \\x1b\[2J\\x1b",
        way=COMMAND_LINE,
        shown=ENDS,
    ),
    Attack("rewrites_the_report_at_exit", "forward-parity", HARMLESS, _OFF, why=_READ_ONLY, way=COMMAND_LINE),
)

ON_A_GPU = (
    Attack("stale_graph", "forward-parity", CAUGHT, _OFF, way=GPU),
    Attack("other_stream", "forward-parity", CAUGHT, _OFF, way=GPU),
)

ATTACKS = (
    *ANSWERS,
    *REPLAYS,
    *SOMETIMES_RIGHT,
    *KNOWS_THE_CALLER,
    *LOOKS_FOR_THE_ANSWER,
    *READ_OTHERWISE,
    *THREADS,
    *CHANGES_ITS_INPUTS,
    *REPLACES,
    *ENDS_THE_RUN,
    *REPLIES,
    *INSIDE,
    *FILES,
    *FROM_OUTSIDE,
    *ON_A_GPU,
)

#: Attacks on measurements of time, which no property judges.
TIMING = tuple(file.stem for file in sorted(FOLDER.glob("timing_*.py")))
#: Files of the folder that are no attacks.
SHARED = ("__init__", "attack", "caller", "parts", "plain_call", "registry", "table", "together")
