"""Prints what TensorBoard itself reads from a folder of event files, in order: a line "tag step value" for each scalar,
"histogram tag step [[left, right, count], ...]", "text tag step 'text'", "hparam name type value", and for each scalar with a
description "about tag: description"."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata
from tensorboard.util import tensor_util

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    for scalar in events.Scalars(tag):
        print(tag, scalar.step, repr(scalar.value))
for tag in sorted(events.Tags()["histograms"]):
    for histogram in events.Histograms(tag):
        h = histogram.histogram_value
        lefts = [h.min, *h.bucket_limit]
        print("histogram", tag, histogram.step,
              [[round(x, 6) for x in bar] for bar in zip(lefts, h.bucket_limit, h.bucket)])
for tag in sorted(events.Tags()["tensors"]):
    plugin = events.SummaryMetadata(tag).plugin_data.plugin_name
    if plugin == "hparams":
        settings = metadata.parse_session_start_info_plugin_data(
            events.SummaryMetadata(tag).plugin_data.content).hparams
        for name in settings:
            value = getattr(settings[name], settings[name].WhichOneof("kind"))
            print("hparam", name, type(value).__name__, value)
        continue
    for tensor in events.Tensors(tag):
        print(plugin, tag, tensor.step, repr(tensor_util.make_ndarray(tensor.tensor_proto).item().decode()))
for tag in sorted(events.Tags()["scalars"]):
    about = events.summary_metadata[tag].summary_description if tag in events.summary_metadata else ""
    if about:
        print(f"about {tag}: {about}")
