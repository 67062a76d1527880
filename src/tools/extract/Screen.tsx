import { memo } from 'react';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatParameters,
  formatReal,
  formatSeconds,
} from '../../formats/quantity';
import type { ExtractedModule, ExtractLoraReport } from '../difference/report';
import { type Cost, Costs } from '../../ui/parts/Costs';
import { SavedFiles } from '../../ui/parts/SavedFiles';
import { Section } from '../../ui/parts/Section';
import { TensorName } from '../../ui/parts/TensorName';
import { ToolEnd } from '../../ui/parts/ToolEnd';
import { type TableColumn, VirtualTable } from '../../ui/parts/VirtualTable';
import { choiceName } from '../../ui/state/model-choices';
import { toggleSelected } from '../../ui/state/studio';
import { useStudio, useStudioState } from '../../ui/studio-context';

/** The adapter and what it leaves: error in total and per module, files, perplexities where they were asked for. */
export function ExtractResult() {
  const extraction = useStudioState((s) => s.comparison.extraction);
  if (!extraction) {
    return (
      <div className="empty" role="status">
        <strong>Nothing extracted yet</strong>
        <span>
          The difference of the two models as two thin matrices per module: a small file that PEFT loads on
          the base. Before it is saved it is merged back, and what it leaves is shown.
        </span>
      </div>
    );
  }
  const { base, finetuned, report, saved } = extraction;
  return (
    <>
      <header className="tool-head">
        <h2>
          LoRA of {choiceName(base)} → {choiceName(finetuned)}
        </h2>
        {report ? (
          <p className="small quiet">
            {formatSeconds(report.seconds)} on {report.engine === 'webgpu' ? 'WebGPU' : 'CPU'} (
            {report.adapter})
          </p>
        ) : null}
      </header>
      <ToolEnd run={extraction} stopped="Stopped. Nothing was saved." nothing="NothingToExtract" />
      {report ? <Totals report={report} /> : null}
      {report?.perplexity ? <Perplexities perplexity={report.perplexity} /> : null}
      {report ? <Notes report={report} /> : null}
      {report ? <Modules modules={report.modules} /> : null}
      {saved ? (
        <Section title="Adapter">
          <SavedFiles saved={saved} />
        </Section>
      ) : null}
    </>
  );
}

function Totals({ report }: { report: ExtractLoraReport }) {
  const { modules, merged, parameters, files } = report;
  const ranks = modules.map((m) => m.rank);
  const [least, most] = [Math.min(...ranks), Math.max(...ranks)];
  const bytes = files.reduce((sum, f) => sum + f.bytes, 0);
  const items: Cost[] = [
    ['Error left', formatReal(merged.error), '‖fine-tune − merged‖ / ‖Δ‖'],
    ['Largest', formatReal(merged.maxError), 'element, merged back'],
    ['Modules', formatCount(modules.length), least === most ? `rank ${least}` : `rank ${least} to ${most}`],
    ['Parameters', formatParameters(parameters), 'of the adapter'],
    ['Size', formatBytes(bytes), formatCounted(files.length, 'file')],
  ];
  return <Costs items={items} />;
}

function Perplexities({ perplexity }: { perplexity: NonNullable<ExtractLoraReport['perplexity']> }) {
  const rows = [
    ['base', perplexity.base],
    ['base + adapter', perplexity.adapted],
    ['fine-tune', perplexity.finetuned],
  ] as const;
  return (
    <Section title="Perplexity">
      <dl className="facts tool-facts">
        {rows.map(([name, report]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{report.perplexity.toFixed(3)}</dd>
          </div>
        ))}
      </dl>
      <p className="small quiet">
        On {formatCounted(perplexity.base.tokens, 'token')}. The nearer the base with the adapter comes to the
        fine-tune, the less was lost.
      </p>
    </Section>
  );
}

/** What is not in the factors, and why. */
function Notes({ report: { saved, left, notes, merged } }: { report: ExtractLoraReport }) {
  if (saved.length + left.length + notes.length + merged.failed.length === 0) return null;
  return (
    <Section title="Worth knowing">
      <ul className="findings">
        {merged.failed.map((f) => (
          <li key={f.name} className="tone-bad">
            {f.name}: {f.message}
          </li>
        ))}
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
      <div className="problems">
        {saved.length > 0 ? (
          <details open={saved.length <= 3}>
            <summary>{formatCounted(saved.length, 'tensor')} carried whole</summary>
            <ul className="problem-tensors mono small">
              {saved.map((s) => (
                <li key={s.name}>
                  {s.name}, {formatBytes(s.bytes)}
                </li>
              ))}
            </ul>
          </details>
        ) : null}
        {left.length > 0 ? (
          <details open={left.length <= 3}>
            <summary>{formatCounted(left.length, 'change')} not carried</summary>
            <ul className="problem-tensors mono small">
              {left.map((l) => (
                <li key={l.name}>
                  {l.name}: {l.why}
                </li>
              ))}
            </ul>
          </details>
        ) : null}
      </div>
    </Section>
  );
}

const Modules = memo(function Modules({ modules }: { modules: readonly ExtractedModule[] }) {
  const studio = useStudio();
  const selected = useStudioState((s) => s.view.selected);
  return (
    <section className="tool-table" aria-label="Modules of the adapter">
      <VirtualTable
        label="Modules of the adapter"
        rows={modules}
        rowKey={(m) => m.module}
        columns={columns}
        selected={selected}
        onSelect={(name) => toggleSelected(studio, name)}
        empty="The adapter has no factors."
      />
    </section>
  );
});

const columns: TableColumn<ExtractedModule>[] = [
  {
    id: 'module',
    head: 'Module',
    track: 'minmax(120px, 1fr)',
    cell: (m) => <TensorName name={m.module} />,
    sortBy: (m) => m.module,
  },
  {
    id: 'rank',
    head: 'Rank',
    track: '44px',
    align: 'end',
    cell: (m) => formatCount(m.rank),
    sortBy: (m) => m.rank,
  },
  {
    id: 'norm',
    head: '‖Δ‖',
    track: '62px',
    align: 'end',
    cell: (m) => formatReal(m.normDelta),
    sortBy: (m) => m.normDelta,
  },
  {
    id: 'error',
    head: 'Error left',
    track: '76px',
    align: 'end',
    cell: (m) => (m.error === null ? 'not finite' : formatReal(m.error)),
    sortBy: (m) => m.error ?? Number.POSITIVE_INFINITY,
  },
];
