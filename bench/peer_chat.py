"""Conversations of a supervised deck as the peer reads them: tokenizer 'bytes', template 'plain', and the rows and their
order of lib/data/chat_source.cpp, detail/packing.cpp and shuffle.cpp.

    python3 bench/peer_chat.py FOLDER [--conversations 4000] [--question 40 160] [--answer 40 160]

writes FOLDER/train.jsonl and valid.jsonl: random conversations, of lengths spread evenly over these ranges of bytes.
"""
import argparse, glob, json, os, random
import numpy as np

from peer_data import shuffled_window

END = 256


def read_chats(patterns):
    """(tokens, learned) of each conversation."""
    for pattern in patterns:
        for name in sorted(glob.glob(pattern)):
            for line in filter(str.strip, open(name)):
                parts = [(m["content"].encode(), m["role"] == "assistant") for m in json.loads(line)["messages"]]
                tokens = [list(text) + [END if answer else ord("\n")] for text, answer in parts]
                yield sum(tokens, []), sum(([answer] * len(t) for t, (_, answer) in zip(tokens, parts)), [])


def pack(sizes, capacity, seed):
    """Best fit decreasing; returns the numbers of each row's items."""
    order = [shuffled_window(i, len(sizes), seed) for i in range(len(sizes))]
    rows, open_rows = [], [[] for _ in range(capacity + 1)]  # open rows by the room they have left
    for item in sorted((item for item in order if sizes[item]), key=lambda item: -sizes[item]):
        room = next((r for r in range(sizes[item], capacity + 1) if open_rows[r]), None)
        row = len(rows) if room is None else open_rows[room].pop()
        if room is None:
            rows.append([])
            room = capacity
        rows[row].append(item)
        if room > sizes[item]:
            open_rows[room - sizes[item]].append(row)
    return [rows[shuffled_window(i, len(rows), seed)] for i in range(len(rows))]


class ChatBatches:
    def __init__(self, deck):
        self.length, self.seed = deck.model.context, deck.campaign.seed
        patterns = deck.data.train if isinstance(deck.data.train, list) else [deck.data.train]
        cut = self.length if deck.data.too_long == "cut" else None
        self.chats = [(tokens[:cut], learned[:cut]) for tokens, learned in read_chats(patterns)]
        sizes = [
            len(tokens) if len(tokens) <= self.length and any(learned[1:]) else 0 for tokens, learned in self.chats
        ]
        self.rows = (pack(sizes, self.length, self.seed)
                     if deck.data.packing else [[i] for i, size in enumerate(sizes) if size])

    def row(self, number):
        """tokens, targets (-100: none), positions, and how many tokens are conversations'."""
        tokens, targets, positions = (np.full(self.length, filler, np.int64) for filler in (0, -100, 0))
        at = 0
        for chat in self.rows[number]:
            t, learned = self.chats[chat]
            n = len(t)
            tokens[at:at + n], positions[at:at + n] = t, np.arange(n)
            for i in range(1, n):
                if learned[i]:
                    targets[at + i - 1] = t[i]
            at += n
        positions[at:] = np.arange(self.length - at)  # padding is a conversation of its own, without targets
        return tokens, targets, positions, np.int64(at)

    def step(self, step, sequences):
        """Batch of optimizer step 1, 2, ...: tokens, targets, positions (sequences, length), and each row's tokens."""
        rows = [
            self.row(shuffled_window((step - 1) * sequences + i, len(self.rows), self.seed)) for i in range(sequences)
        ]
        return tuple(np.stack(part) for part in zip(*rows))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--conversations", type=int, default=4000)
    p.add_argument("--question", type=int, nargs=2, default=(40, 160))
    p.add_argument("--answer", type=int, nargs=2, default=(40, 160))
    a = p.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    rng = random.Random(1)
    text = lambda lengths: "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ,.", k=rng.randint(*lengths)))
    for name, count in (("train", a.conversations), ("valid", 100)):
        with open(os.path.join(a.folder, f"{name}.jsonl"), "w") as f:
            for _ in range(count):
                f.write(
                    json.dumps({
                        "messages": [{"role": "user", "content": text(a.question)},
                                     {"role": "assistant", "content": text(a.answer)}]
                    }) + "\n")


if __name__ == "__main__":
    main()
