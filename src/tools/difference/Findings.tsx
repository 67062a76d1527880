import { formatCount, formatCounted, formatParameters, formatShape } from '../../formats/quantity';
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
      <div className="findings-grid">
        <Section title="Config">
          <Words words={config.words} />
          {config.differences.length > 0 ? <ConfigTable differences={config.differences} /> : null}
        </Section>
        <Section title="Architecture">
          <Words words={architecture.words} />
          <Architecture architecture={architecture} />
        </Section>
        <Section title="Tokenizer">
          <Words words={tokenizer.words} />
          <TokenSamples tokenizer={tokenizer} />
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

/** Side by side; folded away where both are the same. */
function Architecture({ architecture: { base, finetuned } }: Pick<CompareReport, 'architecture'>) {
  const rows: [string, string, string][] = [
    ['type', base.modelType ?? '–', finetuned.modelType ?? '–'],
    ['layers', formatCount(base.layers), formatCount(finetuned.layers)],
    ['hidden', counted(base.hiddenSize), counted(finetuned.hiddenSize)],
    ['heads', heads(base), heads(finetuned)],
    ['vocabulary', counted(base.vocabularySize), counted(finetuned.vocabularySize)],
    ['parameters', formatParameters(base.parameters), formatParameters(finetuned.parameters)],
    ['dtype', Object.keys(base.dtypes).join(' + '), Object.keys(finetuned.dtypes).join(' + ')],
  ];
  const table = (
    <table className="plain-table">
      <thead>
        <tr>
          <td />
          <th scope="col">base</th>
          <th scope="col">fine-tuned model</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([label, a, b]) => (
          <tr key={label} data-differs={a !== b || undefined}>
            <th scope="row">{label}</th>
            <td>{a}</td>
            <td>{b}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
  return rows.every(([, a, b]) => a === b) ? (
    <details>
      <summary className="small quiet">Its figures</summary>
      {table}
    </details>
  ) : (
    table
  );
}

const counted = (n: number | null) => (n === null ? '–' : formatCount(n));

function heads({ attentionHeads, keyValueHeads }: CompareReport['architecture']['base']): string {
  return `${counted(attentionHeads)} / ${counted(keyValueHeads)}`;
}

function TokenSamples({ tokenizer }: Pick<CompareReport, 'tokenizer'>) {
  const samples = [
    ['Only in the base', tokenizer.onlyInBase],
    ['Only in the other', tokenizer.onlyInFinetuned],
    ['With a different id', tokenizer.moved],
  ] as const;
  return samples.map(([label, { count, examples }]) =>
    count === 0 ? null : (
      <p key={label} className="small">
        {label}: {formatCounted(count, 'token')}, such as{' '}
        {examples.map((token) => (
          <code key={token} className="tag">
            {token}
          </code>
        ))}
      </p>
    ),
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
