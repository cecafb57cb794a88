"""What if the agent had known another name? `python docs/examples/rerun.py FOLDER`"""

import sys

import everlog


def main(folder: str) -> None:
    with everlog.open(folder) as system:
        agent = system.agent("sam")
        agent.ask("Hi, my name is Chad")
        question = agent.ask("What is my name?")
        informed = everlog.Settings(blocks=[everlog.InitialBlock("human", "First name: Bob")])
        asked = question.records[0].seq
        done = system.rerun(everlog.RerunOptions(agent_id="sam", from_seq=asked, fork="sam-as-bob", settings=informed))
        for pair in done.comparison.turns:
            before, after = pair.baseline, pair.variant
            print(pair.said, before and before.answers, after and after.answers, pair.differs)
        print(done.comparison.baseline.tokens, "tokens were recorded,", done.comparison.variant.tokens, "in the rerun")


if __name__ == "__main__":
    main(sys.argv[1])
