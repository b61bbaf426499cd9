"""Prints what TensorBoard itself reads in a folder of event files: a line "tag step value" each, in order."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    for scalar in events.Scalars(tag):
        print(tag, scalar.step, repr(scalar.value))
