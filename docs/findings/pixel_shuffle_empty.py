"""F.pixel_unshuffle of an empty tensor keeps its shape on the CPU: backward of F.pixel_shuffle raises."""

import torch
import torch.nn.functional as F

print(f"pixel_unshuffle of (0, 1, 4, 6) by 2: {tuple(F.pixel_unshuffle(torch.zeros(0, 1, 4, 6), 2).shape)} on the CPU")
print(f"on the device meta: {tuple(F.pixel_unshuffle(torch.zeros(0, 1, 4, 6, device='meta'), 2).shape)}")
x = torch.zeros(0, 4, 2, 3, requires_grad=True)
y = F.pixel_shuffle(x, 2)
try:
    y.sum().backward()
    print("backward of pixel_shuffle of no images: a gradient")
except RuntimeError as error:
    print(f"backward of pixel_shuffle of no images: {error}")
