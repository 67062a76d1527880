import '../../ui/styles/tools.css';
import { memo, useMemo } from 'react';
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
import { CutNotes } from '../../ui/parts/CutReport';
import { choices, Segmented, Select } from '../../ui/parts/fields';
import { Problem, ToolEnd } from '../../ui/parts/Message';
import { OpenModels, PairPicker, usePair } from '../../ui/parts/ModelSelect';
import { ToolForm } from '../../ui/parts/OptionsForm';
import { SavedFiles, SaveTo } from '../../ui/parts/SavedFiles';
import { type Cost, Costs, Section } from '../../ui/parts/Section';
import { ToolBar, ToolHead } from '../../ui/parts/ToolBar';
import { nameColumn, numberColumn, type TableColumn, VirtualTable } from '../../ui/parts/VirtualTable';
import { whyNoTool } from '../../ui/state/job';
import type { ToolJob } from '../../ui/state/job-state';
import { choiceName, fileNameOf, loraChoices, pairProblem } from '../../ui/state/roles';
import { editRecipe, setView, toggleSelected } from '../../ui/state/studio';
import { beginTool, chooseToolModels, editTool, whyNotSaved } from '../../ui/state/tool-jobs';
import { useParts, useStudio, useStudioState } from '../../ui/studio-context';
import { Measured } from './Measured';
import { loraOptions, rankOf } from './options';
import type { ExtractLoraReport } from './report';

const SUBJECTS = choices({ one: 'One LoRA', several: 'Several LoRAs', two: 'Two models' });

/** One LoRA looked at and written in another shape, several made one, or the difference of two models as a LoRA. */
export function Screen() {
  const studio = useStudio();
  const subject = useStudioState((s) => s.tools.values.lora.subject);
  const measured = useStudioState((s) => s.tools.jobs.measureLora);
  const reshaped = useStudioState((s) => s.tools.jobs.reshapeLora);
  const extracted = useStudioState((s) => s.tools.jobs.extractLora);
  const isOne = subject === 'one';
  const written = isOne ? reshaped : extracted;
  const shown = measured && 'lora' in measured.request === isOne ? measured : null;
  const choose = (rank: number) => {
    const others: Readonly<Record<string, unknown>> = {
      energy: undefined,
      cutoff: undefined,
      budget: undefined,
    };
    editTool(studio, 'lora', { ...(others as Partial<Values>), resize: true, rank });
  };
  return (
    <div className="stack roomy screen tool-screen">
      <Segmented
        label="What goes in"
        value={subject}
        options={SUBJECTS}
        onChange={(next) => editTool(studio, 'lora', { subject: next })}
      />
      {subject === 'several' ? <Several /> : isOne ? <OneLora /> : <TwoModels />}
      <ToolBar kinds={['measureLora', 'reshapeLora', 'extractLora']} />
      {subject === 'several' ? null : (
        <>
          {written ? <Result job={written} /> : null}
          {shown ? <Measured job={shown} onRank={choose} /> : null}
          {written || shown ? null : (
            <div className="empty" role="status">
              <strong>{isOne ? 'Nothing measured yet' : 'Nothing extracted yet'}</strong>
              <span>
                {isOne
                  ? 'What each module of a LoRA really uses of its rank, from its factors alone; written again it has the ranks, the modules and the format that you choose.'
                  : 'The difference of the two models as two thin matrices per module: a small file that PEFT loads on the base. Before it is saved it is merged back, and what it leaves is shown.'}
              </span>
            </div>
          )}
        </>
      )}
    </div>
  );
}

type Values = ReturnType<typeof useValues>;
const useValues = () => useStudioState((s) => s.tools.values.lora);

/** LoRAs of one base become one in Merge. */
function Several() {
  const studio = useStudio();
  const combine = () => {
    editRecipe(studio, (recipe) => ({ ...recipe, output: 'adapter' }));
    setView(studio, { tab: 'files' });
  };
  return (
    <div className="stack">
      <p className="quiet">
        LoRAs of one base become one LoRA in Merge: choose them as contributors, a method, and how they are
        combined. A Gram merge of them is a LoRA too, and any other merge is cut to one.
      </p>
      <div className="row wrap">
        <Button variant="primary" onClick={combine}>
          Combine in Merge
        </Button>
      </div>
    </div>
  );
}

/** The LoRA, its new shape, and the buttons. */
function OneLora() {
  const studio = useStudio();
  const values = useValues();
  const { models, recipe } = useParts('models', 'recipe');
  const chosen = useStudioState((s) => s.tools.models.lora);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const choices = useMemo(() => loraChoices({ models, recipe }), [models, recipe]);
  const lora = choices.find(({ value }) => value === chosen)?.value ?? choices[0]?.value ?? null;
  const none = lora === null ? 'Open a LoRA first.' : null;
  const problem = optionsProblem(loraOptions, values);
  const measure = () => lora !== null && void beginTool(studio, 'measureLora', { lora });
  const write = () => {
    if (lora === null) return;
    const { resize, maxRank, include, exclude, scale, format, dtype } = values;
    const asked = {
      ...{ lora, maxRank, scale, format, dtype, rank: resize ? rankOf(values) : null },
      ...{ include: include.filter(Boolean), exclude: exclude.filter(Boolean) },
    };
    void beginTool(studio, 'reshapeLora', asked, fileNameOf('lora', lora));
  };
  return (
    <>
      <div className="stack tool-model">
        <span className="label" aria-hidden="true">
          LoRA
        </span>
        <div className="row wrap apart">
          <Select
            aria-label="LoRA"
            value={lora ?? ''}
            options={choices.length > 0 ? choices : [{ value: '', label: 'No LoRA is open' }]}
            onChange={(ref) => chooseToolModels(studio, { lora: ref })}
          />
          <OpenModels />
        </div>
      </div>
      <div className="row wrap apart">
        <Button variant="primary" why={busy ?? none} onClick={measure}>
          Inspect
        </Button>
        <p className="small quiet whole">
          Ranks, norms and what each rank keeps, from the factors: the base is not read.
        </p>
      </div>
      <div className="stack loose">
        <Segmented
          label="Ranks"
          value={values.resize ? 'change' : 'keep'}
          options={RESIZE}
          onChange={(next) => editTool(studio, 'lora', { resize: next === 'change' })}
        />
        <ToolForm tool="lora" names={values.resize ? [...RANKS, ...SHAPE] : SHAPE} needed />
        <Problem>{problem}</Problem>
        <More names={['include', 'exclude']} words="Modules" />
        <div className="row wrap apart">
          <Button why={busy ?? none ?? problem ?? unsaved} onClick={write}>
            Write LoRA
          </Button>
          <SaveTo name={lora && fileNameOf('lora', lora)} />
        </div>
      </div>
    </>
  );
}

/** Two models, the ranks of their difference, and the buttons. */
function TwoModels() {
  const studio = useStudio();
  const values = useValues();
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const pair = usePair();
  const { base, finetuned } = pair;
  const problem = optionsProblem(loraOptions, values);
  const { maxRank, embeddings, vectors, dtype, seed } = values;
  const modules = { include: values.include.filter(Boolean), exclude: values.exclude.filter(Boolean) };
  const measure = () => {
    if (base === null || finetuned === null) return;
    void beginTool(studio, 'measureLora', { base, finetuned, seed, ...modules });
  };
  const extract = () => {
    const rank = rankOf(values);
    if (base === null || finetuned === null || rank === null) return;
    const asked = { base, finetuned, rank, maxRank, embeddings, vectors, dtype, seed, ...modules };
    void beginTool(studio, 'extractLora', asked, fileNameOf('lora', finetuned));
  };
  const why = busy ?? pairProblem(pair);
  return (
    <>
      <PairPicker />
      <OpenModels />
      <div className="row wrap apart">
        <Button why={why} onClick={measure}>
          Measure ranks
        </Button>
        <p className="small quiet whole">How much of the difference each rank keeps, before one is chosen.</p>
      </div>
      <div className="stack loose">
        <ToolForm tool="lora" names={RANKS} needed />
        <Problem>{problem}</Problem>
        <More names={MORE} words="Modules, embeddings, dtype" />
        <div className="row wrap apart">
          <Button variant="primary" why={why ?? problem ?? unsaved} onClick={extract}>
            Extract LoRA
          </Button>
          <SaveTo name={finetuned && fileNameOf('lora', finetuned)} />
        </div>
      </div>
    </>
  );
}

function More({ names, words }: { names: readonly (keyof typeof loraOptions)[]; words: string }) {
  return (
    <details className="tool-more">
      <summary className="small quiet">{words}</summary>
      <ToolForm tool="lora" names={names} />
    </details>
  );
}

const RESIZE = choices({ keep: 'Ranks as they are', change: 'Other ranks' });
const RANKS = ['rank', 'energy', 'cutoff', 'budget', 'maxRank'] as const;
const SHAPE = ['scale', 'format', 'dtype'] as const;
const MORE = ['include', 'exclude', 'embeddings', 'vectors', 'dtype', 'seed'] as const;

/** The adapter: what it keeps in total and per module, and its files. */
function Result({ job }: { job: ToolJob<'extractLora'> | ToolJob<'reshapeLora'> }) {
  const { request, report, saved } = job;
  const title =
    'lora' in request
      ? `Written: ${choiceName(request.lora)}`
      : `LoRA of ${choiceName(request.base)} → ${choiceName(request.finetuned)}`;
  return (
    <>
      <ToolHead title={title} report={report} />
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
    [
      'Error left',
      formatReal(merged.error),
      merged.maxError === null ? 'of the change' : '‖fine-tune − merged‖ / ‖Δ‖',
    ],
    ...(merged.maxError === null
      ? []
      : [['Largest', formatReal(merged.maxError), 'element, merged back'] satisfies Cost]),
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
