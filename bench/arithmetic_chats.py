"""Word problems of ./prepare arithmetic as conversations for supervised training and as labelled requests.

    python3 bench/arithmetic_chats.py data/long_arithmetic

writes train_chat.jsonl, test_chat.jsonl, test_requests.jsonl and, with the plan before the execution,
train_plan_chat.jsonl, test_plan_chat.jsonl. Calculator notes <<...>> are left out and plans are skeletons, as in
arithmetic_hdp.in (&data notes, plan).
"""
import json
import re
import sys
from pathlib import Path


def lines_of(answer):
    return re.sub(r"<<[^>]*>>", "", answer)


def skeleton(execution):
    steps = execution.split("\n")[:-1]
    return "\n".join(re.sub(r"[0-9]+", "_", step) for step in steps)


def chat(question, answer):
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return json.dumps({"messages": messages}) + "\n"


def main():
    folder = Path(sys.argv[1])
    for part in "train", "test":
        with open(folder / f"{part}.jsonl") as file:
            problems = [json.loads(line) for line in file]
        solved = [(p["question"], lines_of(p["answer"])) for p in problems]
        with open(folder / f"{part}_chat.jsonl", "w") as out:
            out.writelines(chat(q, e) for q, e in solved)
        with open(folder / f"{part}_plan_chat.jsonl", "w") as out:
            out.writelines(chat(q, skeleton(e) + "\n\n" + e) for q, e in solved)
        if part == "test":
            with open(folder / "test_requests.jsonl", "w") as out:
                for i, (q, e) in enumerate(solved):
                    label = e.rsplit("#### ", 1)[1]
                    out.write(json.dumps({"text": q, "id": i, "label": label}) + "\n")


if __name__ == "__main__":
    main()
