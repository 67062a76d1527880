import { lazy, Suspense, useEffect } from 'react';
import { type Combination, combinationsOf } from '../../formats/adapter-combination';
import { namedFiles } from '../../formats/gguf-type';
import { formatBytes, formatCounted } from '../../formats/quantity';
import { SHARES, shareWords } from '../../reports/lora';
import { CopyButton, TextBlock } from '../parts/Button';
import { CutNotes } from '../parts/CutReport';
import { Check, choices, LabeledSelect, NumberField } from '../parts/fields';
import { Problem } from '../parts/Message';
import { SavedFiles, SaveTo } from '../parts/SavedFiles';
import { Section } from '../parts/Section';
import { outputName } from '../state/built-recipe';
import { fileName } from '../state/job-state';
import { isRecipeOf } from '../state/recipe-identity';
import { combinationOf } from '../state/recipe-state';
import { recipeProblems } from '../state/recipe-validation';
import { lastFinished, type RunState } from '../state/runs';
import { editRecipe, editSlice, methodOf, setView } from '../state/studio';
import { useParts, useStudio, useStudioState } from '../studio-context';
import { ChatPreview, ChatTemplateForm, GgufForm, OutputOptions } from './ChatTemplateForm';
import { PlanProblems } from './PlanSection';

const PushSection = lazy(() => import('../push/PushSection').then((m) => ({ default: m.PushSection })));

/** The plan's warnings, the files and their form, how they are used and pushed. */
export function FilesTab() {
  const studio = useStudio();
  const at = useStudioState((s) => s.view.filesAt);
  useEffect(() => {
    if (at === null) return;
    const part = document.getElementById(`files-${at}`);
    part?.scrollIntoView({ block: 'center' });
    part?.querySelector<HTMLElement>('select, input, button')?.focus();
    setView(studio, { filesAt: null });
  }, [studio, at]);
  return (
    <div className="stack loose screen files-screen">
      <PlanProblems />
      <div className="stack roomy output-files">
        <OutputFiles />
        <CutLora />
        <UseIt />
        <div id="files-push">
          <Suspense>
            <PushSection />
          </Suspense>
        </div>
      </div>
      <Form />
    </div>
  );
}

/** Place and name of the files. */
function Destination() {
  const studio = useStudio();
  const output = useStudioState((s) => s.output);
  const proposed = useStudioState((s) => outputName(s.recipe));
  return (
    <>
      <SaveTo name={output.name ?? proposed}>
        <input
          className="field mono grow"
          aria-label="Name of the output"
          value={output.name ?? proposed}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => {
            const name = fileName(event.target.value);
            editSlice(studio, 'output', { name: name === '' ? null : name });
          }}
        />
      </SaveTo>
      <Streams />
    </>
  );
}

/** Whether inputs on the Hub are kept, where there is something to download. */
function Streams() {
  const studio = useStudio();
  const stream = useStudioState((s) => s.plan.report?.stream);
  const streams = useStudioState((s) => s.output.streams);
  if (!stream || stream.bytes === 0) return null;
  const again = stream.again.map(
    ({ why, bytes }) => `${bytes === null ? '' : `${formatBytes(bytes)}: `}${why}`,
  );
  return (
    <>
      <Check
        label="Do not keep the inputs"
        checked={streams}
        onChange={(next) => editSlice(studio, 'output', { streams: next })}
      />
      <p className="small quiet">
        {formatBytes(stream.bytes)} then pass by instead of being stored, for {formatBytes(stream.memory)} of
        memory; another merge fetches them again.
        {again.length > 0 ? ` Read again: ${again.join('; ')}.` : ''}
      </p>
    </>
  );
}

const labels: Partial<Record<Combination, string>> = {
  cat: 'cat: exact, ranks add up',
  gram: 'gram: exact, ranks add up',
  gram_svd: 'gram_svd: cut to a rank',
  merged_svd: 'merged_svd: the change of the merge, cut',
};

/** Whether the merge becomes a model or a LoRA, and how. */
function AdapterForm() {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const combination = useStudioState((s) => combinationOf(s.recipe, s.models));
  const adapter = recipe.output === 'adapter';
  const isCut = combination === 'merged_svd';
  return (
    <>
      <LabeledSelect
        label="Output"
        value={recipe.output}
        options={choices({ model: 'a model', adapter: 'a LoRA of the base' })}
        onChange={(output) => editRecipe(studio, (r) => ({ ...r, output }))}
      />
      {adapter ? (
        <LabeledSelect
          label="Combination"
          value={combination}
          options={combinationsOf(recipe.method).map((c) => ({ value: c, label: labels[c] ?? c }))}
          onChange={(chosen) => editRecipe(studio, (r) => ({ ...r, combination: chosen }))}
        />
      ) : null}
      {adapter && isCut ? (
        <LabeledSelect
          label="Keep"
          value={String(recipe.energy)}
          options={[
            ...SHARES.map((share) => ({
              value: String(share),
              label: `${shareWords(share)} of each change, rank 128 at most`,
            })),
            { value: 'null', label: 'what a rank keeps' },
          ]}
          onChange={(kept) =>
            editRecipe(studio, (r) => ({ ...r, energy: kept === 'null' ? null : Number(kept) }))
          }
        />
      ) : null}
      {adapter && (isCut ? recipe.energy === null : combination.endsWith('svd')) ? (
        <div className="labeled">
          <span>Rank</span>
          <NumberField
            className="field mono short"
            label="Rank of the LoRA"
            value={recipe.rank}
            min={1}
            max={1024}
            step={1}
            onChange={(rank) => editRecipe(studio, (r) => ({ ...r, rank: Math.round(rank) }))}
          />
        </div>
      ) : null}
    </>
  );
}

/** Where the files go and in which form they come; a recipe as it is written says the form itself. */
function Form() {
  const { recipe, models } = useParts('recipe', 'models');
  const problem = recipeProblems(recipe, models, methodOf(recipe)).find((p) => p.place.kind === 'shardBytes');
  if (recipe.asWritten !== null) {
    return (
      <Section title="Output">
        <Destination />
        <ChatPreview />
      </Section>
    );
  }
  return (
    <Section title="Output">
      <Destination />
      <AdapterForm />
      <OutputOptions names={recipe.output === 'adapter' ? ['dtype'] : ['dtype', 'shardBytes']} />
      <Problem>{problem?.remedy}</Problem>
      <ChatTemplateForm />
      <div id="files-gguf" className="stack tight">
        <GgufForm />
      </div>
    </Section>
  );
}

/** What the LoRA of the finished merge keeps of its change. */
function CutLora() {
  const lora = useStudioState((s) => lastFinished(s)?.report?.lora);
  return lora ? <CutNotes report={lora} /> : null;
}

/** How the finished output is run elsewhere, each with its real names. */
function UseIt() {
  const run = useStudioState(lastFinished);
  const use = run?.report?.use;
  if (!run || !use || use.length === 0) return null;
  const { kind, name } = run.destination;
  return (
    <Section title="Use it">
      <p className="small quiet">
        {kind === 'folder' ? 'Run' : 'Unpack the .zip, and run'} these beside the folder{' '}
        <span className="mono">{name}</span>
        {run.outputFiles.some((file) => file.endsWith('.gguf'))
          ? '; those that name a .gguf file, inside it.'
          : '.'}
      </p>
      {use.map(({ title, code }) => (
        <div key={title} className="stack tight use-snippet">
          <div className="row">
            <h3 className="small grow">{title}</h3>
            <CopyButton text={() => code} />
          </div>
          <TextBlock label={`${title}: what to type`} text={code} />
        </div>
      ))}
    </Section>
  );
}

/** The files of the last finished run with size, hash and a download each; before that, the files a merge will write. */
export function OutputFiles() {
  const run = useStudioState(lastFinished);
  const plan = useStudioState((s) => s.plan.report?.outputFiles);
  const name = useStudioState((s) => s.output.name ?? outputName(s.recipe));
  const planned = plan && namedFiles(plan, name);
  const isMerged = useStudioState((s) => run !== null && isRecipeOf(run.recipe, s.recipe, s.models));
  const done = run ? <Finished key={run.id} run={run} isRecipe={isMerged} /> : null;
  if (isMerged && done) return done;
  return (
    <>
      <Section title="Files to be written">
        <p className="quiet">{planned?.join(', ') ?? 'Known once the plan is ready.'}</p>
      </Section>
      {done}
    </>
  );
}

/** @param isRecipe it is the merge of the current recipe */
function Finished({ run, isRecipe }: { run: RunState; isRecipe: boolean }) {
  const { destination, report, outputFiles } = run;
  const shards = new Map((report?.shards ?? []).map((s) => [s.file, s]));
  const files = [...new Set([...shards.keys(), ...outputFiles])].map((name) => ({
    name,
    ...shards.get(name),
  }));
  return (
    <Section
      title={isRecipe ? 'Files' : 'Files of the last merge'}
      aside={<span className="small quiet">{formatCounted(files.length, 'file')}</span>}
    >
      {isRecipe ? null : <p className="small quiet">The recipe has been changed since.</p>}
      <SavedFiles saved={{ ...destination, files }} old={run.again === true}>
        <span>
          {run.title} · {run.methodTitle}
        </span>
        <br />
      </SavedFiles>
    </Section>
  );
}
