#include "prepare/detail/command_options.hpp"

namespace tern::prepare::detail {
namespace {

constexpr CommandText texts[] = {
    {"quickstart", "[options]", "word problems of one or two steps, for input/quickstart.in",
     "Makes data/quickstart: word problems of one or two steps, and a BPE for them. No download;\n"
     "seconds. Does nothing if they are there.\n",
     ""},
    {"cpp-headers", "[options]", "headers of this machine, for input/laptop_gpt.in, trm_small.in",
     "Makes data/cpp_headers from text that is already on this machine, the headers of the C++\n"
     "standard library, with a BPE of 1,024 tokens trained on it. Seconds. Does nothing if they "
     "are\n"
     "there.\n",
     ""},
    {"text", "--input FILES... --output data/NAME (--tokenizer WHERE | --train-bpe N) [options]",
     "token shards from text files of your own",
     "Makes train_*.bin, valid_*.bin and meta.json from text files (a file is a document, or "
     "several\n"
     "with <|endoftext|> between them), or from JSON lines (one object per line).\n",
     "  ./prepare text --input corpus.jsonl --tokenizer gpt2 --output data/corpus\n"
     "  ./prepare text --input code.txt --tokenizer bytes --valid-fraction 0.1 --output data/code\n"
     "  ./prepare text --input *.md --train-bpe 512 --valid-fraction 0.4 --output data/own\n"},
    {"arithmetic", "[options]", "word problems of one to eight steps, in GSM8K's format",
     "Makes data/arithmetic: word problems of one to four steps in GSM8K's format (train.jsonl,\n"
     "test.jsonl) and with sub-questions (train_socratic.jsonl, test_socratic.jsonl), and a BPE "
     "for\n"
     "them. No download; seconds. With --chats also as conversations (train_chat.jsonl,\n"
     "test_chat.jsonl, and with a plan before each execution train_plan_chat.jsonl,\n"
     "test_plan_chat.jsonl) and as labeled requests (test_requests.jsonl).\n",
     "  ./prepare arithmetic --steps 2 --seed 7 --output data/two_steps\n"
     "  ./prepare arithmetic --least-steps 4 --steps 8 --problems 200e3 --chats \\\n"
     "      --output data/long_arithmetic\n"},
    {"languages", "[options]", "sentences of many languages, for input/distill_*.in",
     "Makes data/languages: sentences of a dozen languages, a prompt that gives each language a\n"
     "code, conversations for a teacher that reads such prompts, and a BPE: for\n"
     "input/distill_small_*.in. No download; seconds. Does nothing if they are there. With "
     "--tables\n"
     "as many as --conversations, each conversation has a table of codes of its own, and the "
     "teacher\n"
     "must read it: for input/distill_languages_*.in, with the options that\n"
     "jobs/distill_languages.sh gives.\n",
     ""},
    {"gsm8k", "[FOLDER] [options]", "GSM8K's problems with variants, for input/h200_hdp.in",
     "Makes data/gsm8k_variants from FOLDER (data/gsm8k), which holds GSM8K's train.jsonl and\n"
     "test.jsonl: its training problems, and variants of them with other numbers, with all\n"
     "calculations redone; used by e.g. input/h200_hdp.in. With --vocabulary N also a BPE of N\n"
     "tokens for them; with --chats also as conversations (train_chat.jsonl, test_chat.jsonl) and "
     "as\n"
     "labeled requests (test_requests.jsonl).\n",
     "  ./prepare gsm8k --variants 100 --copies 5 --chats --vocabulary 4096\n"},
    {"sentences", "--input FILE --output data/NAME [options]",
     "texts for a teacher to answer, and others to test with",
     "Splits a file of texts (one per line, or JSON lines with \"text\" and e.g. \"label\") into\n"
     "sentences.jsonl, for a teacher to answer, and test.jsonl. No text is in both; each label "
     "has\n"
     "its share in the test.\n",
     ""},
    {"plans", "--input FILE --output data/NAME [--answers ANSWERS] [options]",
     "plans for problems, written by a model, for input/gsm8k_plans.in",
     "Makes requests for plans of the problems in FILE (requests.jsonl, prompt.txt), for\n"
     "input/gsm8k_plans.in; with the model's answers to them, samples.jsonl: the problems with "
     "the\n"
     "plans, for input/h200_hdp.in.\n",
     ""}};

}  // namespace

std::span<const CommandText> command_texts() { return texts; }

}  // namespace tern::prepare::detail
