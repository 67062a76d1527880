import { formatCount } from '../../formats/quantity';
import { LabelledNumber } from '../parts/LabelledNumber';
import { Problem } from '../parts/Problem';
import { Segmented } from '../parts/Segmented';
import { editEvaluation } from '../state/evaluation';
import { protocolProblem } from '../state/evaluation-gate';
import type { EvaluationSlice } from '../state/evaluation-state';
import { QUICK_CHARACTERS } from '../state/evaluation-texts';
import { useStudio, useStudioState } from '../studio-context';

/** How much of each text is scored and in which windows, in fields and in words. */
export function ProtocolFields() {
  const studio = useStudio();
  const evaluation = useStudioState((s) => s.evaluation);
  const { amount, window, stride } = evaluation;
  const problem = protocolProblem(evaluation);
  return (
    <div className="protocol">
      <Segmented
        label="How much of each text"
        value={amount}
        options={[
          { value: 'quick', label: 'Quick' },
          { value: 'full', label: 'Full text' },
        ]}
        onChange={(next) => editEvaluation(studio, { amount: next })}
      />
      <LabelledNumber
        label="window"
        name="window in tokens"
        value={window}
        min={2}
        max={131_072}
        invalid={problem !== null}
        onChange={(next) => editEvaluation(studio, { window: next })}
      />
      <LabelledNumber
        label="stride"
        name="stride in tokens"
        value={stride}
        min={1}
        max={131_072}
        invalid={problem !== null}
        onChange={(next) => editEvaluation(studio, { stride: next })}
      />
      <Problem className="protocol-words">{problem}</Problem>
      {problem ? null : <p className="small quiet protocol-words">{protocolWords(evaluation)}</p>}
    </div>
  );
}

function protocolWords({ amount, window, stride, outcomes }: EvaluationSlice): string {
  const scope =
    amount === 'quick' ? `The first ${formatCount(QUICK_CHARACTERS)} characters of each text. ` : '';
  if (stride === window)
    return `${scope}Windows of ${formatCount(window)} tokens do not overlap; every token but the first of each is scored; ${startWords(outcomes)}.${maskWords(outcomes)}`;
  return `${scope}Every token but the first is scored once, in windows of ${formatCount(window)} tokens that advance by ${formatCount(stride)}; ${startWords(outcomes)}.${maskWords(outcomes)}`;
}

/** What is otherwise for models that fill in masked tokens, once one was measured. */
function maskWords(outcomes: EvaluationSlice['outcomes']): string {
  for (const outcome of outcomes.values()) {
    const masked = 'report' in outcome ? outcome.report.protocol.masked : undefined;
    if (masked !== undefined)
      return ` Encoders fill in every token, the first too: one of ${masked} tokens of a window is masked at a time.`;
  }
  return '';
}

/** Which token stands in front: known once something was measured. */
function startWords(outcomes: EvaluationSlice['outcomes']): string {
  const found = new Set<number | null>();
  for (const outcome of outcomes.values()) if ('report' in outcome) found.add(outcome.report.protocol.bos);
  if (found.size === 0) return 'the tokenizer’s own start token, if it has one, comes first';
  const words = [...found].map((id) => (id === null ? 'no start token' : `start token ${id}`));
  return `the text is preceded by ${words.join(' or ')}`;
}
