import { formatCounted, formatShape } from '../../formats/quantity';
import { Message } from '../../ui/parts/Message';
import { FoldedList, Section, Sentences } from '../../ui/parts/Section';
import type { CompareReport } from './report';

/** The findings as sentences: weights, config, architecture, tokenizer, and what could not be compared. */
export function Findings({ report }: { report: CompareReport }) {
  const { total, config, architecture, tokenizer } = report;
  const same = total.compared > 0 && total.identical === total.compared;
  return (
    <>
      {same ? (
        <Message
          tone="ok"
          title="The two are the same in every tensor both have."
          hint="No weight differs by a single bit, so there is nothing to merge and no LoRA to extract."
        />
      ) : null}
      <Section title="In words">
        <Sentences words={report.words} />
      </Section>
      <div className="columns">
        <Section title="Config">
          <Words words={config.words} />
          {config.differences.length > 0 ? <ConfigTable differences={config.differences} /> : null}
        </Section>
        <Section title="Architecture">
          <Words words={architecture.words} />
        </Section>
        <Section title="Tokenizer">
          <Words words={tokenizer.words} />
        </Section>
      </div>
      <Uncompared report={report} />
    </>
  );
}

function Words({ words }: { words: readonly string[] }) {
  return words.map((sentence) => <p key={sentence}>{sentence}</p>);
}

function ConfigTable({ differences }: { differences: CompareReport['config']['differences'] }) {
  return (
    <table className="plain-table">
      <thead>
        <tr>
          <th scope="col">field</th>
          <th scope="col">base</th>
          <th scope="col">fine-tuned model</th>
        </tr>
      </thead>
      <tbody>
        {differences.map((d) => (
          <tr key={d.field} className={d.harmless ? 'quiet' : undefined}>
            <th scope="row" className="mono">
              {d.field}
              {d.harmless ? <span className="tag"> harmless</span> : null}
            </th>
            <td className="mono">{d.base ?? '–'}</td>
            <td className="mono">{d.finetuned ?? '–'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Tensors that stand alone, have another shape, or failed: they stop nothing, and are all named here. */
function Uncompared({ report }: { report: CompareReport }) {
  const { onlyInBase, onlyInFinetuned, shapeMismatches, failed, raw } = report;
  const lists: { title: string; items: string[]; bad?: boolean }[] = [
    { title: 'only in the base', items: onlyInBase },
    { title: 'only in the other model', items: onlyInFinetuned },
    {
      title: 'of a different shape',
      items: shapeMismatches.map((m) => `${m.name}: ${formatShape(m.base)} and ${formatShape(m.finetuned)}`),
    },
    { title: 'that failed', items: failed.map((f) => `${f.name}: ${f.message} ${f.hint}`), bad: true },
    {
      title: 'compared byte by byte',
      items: raw.map((r) => `${r.name} (${r.dtype.base}): ${r.identical ? 'identical' : 'different'}`),
    },
  ];
  const shown = lists.filter((list) => list.items.length > 0);
  if (shown.length === 0) return null;
  return (
    <Section title="Not measured like the others">
      <div className="stack tight">
        {shown.map(({ title, items, bad = false }) => (
          <FoldedList
            key={title}
            title={`${formatCounted(items.length, 'tensor')} ${title}`}
            items={items}
            bad={bad}
          />
        ))}
      </div>
    </Section>
  );
}
