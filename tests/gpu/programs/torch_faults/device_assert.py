"""An index out of range in the 500th of a thousand launches: a device-side assert. Ends with an error."""
import torch

table, index = torch.zeros(16, 8, device="cuda"), torch.zeros(4, dtype=torch.long, device="cuda")
for i in range(1000):
    if i == 500:
        index = index + 99
    rows = table[index]  # the culprit, from the 500th on
torch.cuda.synchronize()
