import { formatBytes, formatCounted } from '../../formats/quantity';
import { type CutReport, cutWords } from '../../reports/lora';
import { FoldedList, Section, Sentences } from './Section';

/** What a change that was cut to a LoRA keeps, and what is outside of its factors, with the reasons. */
export function CutNotes({ report }: { report: CutReport }) {
  const { saved, left, notes, merged } = report;
  const [kept = '', ...poor] = cutWords(report);
  return (
    <Section title="What it keeps">
      <Sentences words={merged.failed.map(({ name, message }) => `${name}: ${message}`)} bad />
      <Sentences words={poor} bad />
      <Sentences words={[kept, ...notes]} />
      <div className="stack tight">
        <FoldedList
          title={`${formatCounted(saved.length, 'tensor')} carried whole`}
          items={saved.map(({ name, bytes }) => `${name}, ${formatBytes(bytes)}`)}
        />
        <FoldedList
          title={`${formatCounted(left.length, 'change')} not carried`}
          items={left.map(({ name, why }) => `${name}: ${why}`)}
        />
      </div>
    </Section>
  );
}
