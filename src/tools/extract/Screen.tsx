import '../../ui/styles/tools.css';
import { memo } from 'react';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatParameters,
  formatReal,
} from '../../formats/quantity';
import type { ExtractedModule } from '../../reports/lora';
import { optionsProblem } from '../../reports/option';
import { Button } from '../../ui/parts/Button';
import { type Cost, Costs } from '../../ui/parts/Costs';
import { CutNotes } from '../../ui/parts/CutReport';
import { ToolEnd } from '../../ui/parts/ErrorCard';
import { Problem } from '../../ui/parts/Message';
import { OpenModels, PairPicker, usePair } from '../../ui/parts/ModelSelect';
import { OptionsForm } from '../../ui/parts/OptionsForm';
import { SavedFiles, SaveTo } from '../../ui/parts/SavedFiles';
import { Section } from '../../ui/parts/Section';
import { ToolBar, ToolHead } from '../../ui/parts/ToolBar';
import { nameColumn, numberColumn, type TableColumn, VirtualTable } from '../../ui/parts/VirtualTable';
import { whyNoTool } from '../../ui/state/job';
import type { ToolJob } from '../../ui/state/job-state';
import { choiceName, fileNameOf, pairProblem } from '../../ui/state/model-choices';
import { toggleSelected } from '../../ui/state/studio';
import { beginTool, editTool, whyNotSaved } from '../../ui/state/tool-jobs';
import { useStudio, useStudioState } from '../../ui/studio-context';
import { extractOptions, rankOf } from './options';
import type { ExtractLoraReport } from './report';

/** Two models: their difference as a LoRA. */
export function Screen() {
  const job = useStudioState((s) => s.tools.jobs.extractLora);
  return (
    <div className="screen tool-screen">
      <PairPicker />
      <OpenModels />
      <Form />
      <ToolBar kinds={['extractLora']} />
      {job ? (
        <Result job={job} />
      ) : (
        <div className="empty" role="status">
          <strong>Nothing extracted yet</strong>
          <span>
            The difference of the two models as two thin matrices per module: a small file that PEFT loads on
            the base. Before it is saved it is merged back, and what it leaves is shown.
          </span>
        </div>
      )}
    </div>
  );
}

/** Size and content of the adapter, and the button. */
function Form() {
  const studio = useStudio();
  const values = useStudioState((s) => s.tools.values.extract);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const pair = usePair();
  const { base, finetuned } = pair;
  const problem = optionsProblem(extractOptions, values);
  const edit = (change: Partial<typeof values>) => editTool(studio, 'extract', change);
  const extract = () => {
    const rank = rankOf(values);
    if (base === null || finetuned === null || rank === null) return;
    const { maxRank, include, exclude, embeddings, vectors, dtype, seed } = values;
    const asked = {
      ...{ base, finetuned, rank, maxRank, embeddings, vectors, dtype, seed },
      include: include.filter(Boolean),
      exclude: exclude.filter(Boolean),
    };
    void beginTool(studio, 'extractLora', asked, {
      name: fileNameOf('lora', finetuned),
      files: ({ files }) => files.map(({ file, ...rest }) => ({ name: file, ...rest })),
    });
  };
  return (
    <div className="stack loose">
      <OptionsForm options={extractOptions} names={RANKS} values={values} onChange={edit} />
      <Problem>{problem}</Problem>
      <details className="tool-more">
        <summary className="small quiet">Modules, embeddings, dtype</summary>
        <OptionsForm options={extractOptions} names={MORE} values={values} onChange={edit} />
      </details>
      <div className="row wrap apart">
        <Button variant="primary" why={busy ?? pairProblem(pair) ?? problem ?? unsaved} onClick={extract}>
          Extract LoRA
        </Button>
        <SaveTo what="Adapter to" />
      </div>
    </div>
  );
}

const RANKS = ['rank', 'energy', 'cutoff', 'budget', 'maxRank'] as const;
const MORE = ['include', 'exclude', 'embeddings', 'vectors', 'dtype', 'seed'] as const;

/** The adapter: error in total and per module, files, perplexities where asked for. */
function Result({ job }: { job: ToolJob<'extractLora'> }) {
  const { request, report, saved } = job;
  return (
    <>
      <ToolHead
        title={`LoRA of ${choiceName(request.base)} → ${choiceName(request.finetuned)}`}
        report={report}
      />
      <ToolEnd run={job} stopped="Stopped. Nothing was saved." nothing="NothingToExtract" />
      {report ? <Totals report={report} /> : null}
      {report ? <CutNotes report={report} /> : null}
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
  nameColumn('Module', (m) => m.module),
  numberColumn('rank', 'Rank', '44px', (m) => m.rank, formatCount),
  numberColumn('norm', '‖Δ‖', '62px', (m) => m.normDelta, formatReal),
  numberColumn('error', 'Error left', '76px', (m) => m.error, formatReal, 'not finite'),
];
