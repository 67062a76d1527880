import { lazy, Suspense } from 'react';
import { COMBINATIONS_OF, type Combination } from '../../formats/adapter-combination';
import { formatBytes } from '../../formats/quantity';
import { bytesOf, contentOf, fileIn, folderIn } from '../../platform';
import { StorageList } from '../bars/StorageList';
import { hasDirectoryPicker } from '../local/local-files';
import { Button } from '../parts/Button';
import { CopyButton } from '../parts/CopyButton';
import { FolderIcon } from '../parts/icons';
import { NumberField } from '../parts/NumberField';
import { Problem } from '../parts/Problem';
import { Section } from '../parts/Section';
import { Select } from '../parts/Select';
import { outputName } from '../state/built-recipe';
import { fileName } from '../state/job-state';
import { combinationOf, type OutDtype, setOutput } from '../state/recipe-state';
import { recipeProblems, SHARD_BYTES } from '../state/recipe-validation';
import { chooseFolder } from '../state/run';
import { currentRun, type RunState } from '../state/runs';
import { editRecipe, editSlice, methodOf, notifyError, type Studio } from '../state/studio';
import { useAnswer, useStudio, useStudioState } from '../studio-context';
import { ChatPreview, ChatTemplateForm, GgufForm } from './ChatTemplateForm';
import { OutputFiles } from './OutputFiles';
import { VerifySection } from './VerifySection';

const PushSection = lazy(() => import('../push/PushSection').then((m) => ({ default: m.PushSection })));

const RecipeYaml = lazy(() => import('./RecipeYaml').then((m) => ({ default: m.RecipeYaml })));

/** Where the result goes and in which form; its files once there are any; the recipe as text. */
export function OutputTab() {
  const done = useStudioState((s) => (currentRun(s)?.status === 'done' ? s.currentRunId : null));
  // a recipe as it is written says itself in which form its output comes
  const written = useStudioState((s) => s.recipe.asWritten !== null);
  const available = useStudioState((s) => s.engine.info?.storage.available === true);
  const last = useStudioState((s) => (done ? (currentRun(s)?.destination.name ?? null) : null));
  return (
    <div className="screen output-screen" data-done={done !== null || undefined}>
      <div className="stack output-column">
        <Destination />
        {written ? (
          <Section title="Chat template">
            <ChatPreview />
          </Section>
        ) : (
          <Form />
        )}
        <Suspense fallback={<div className="yaml-space" />}>
          <RecipeYaml />
        </Suspense>
      </div>
      <div className="stack output-column output-files">
        <OutputFiles />
        <UseIt />
        <Suspense>
          <PushSection />
        </Suspense>
        <VerifySection />
        {done ? <ModelCard key={done} /> : null}
        {available ? <StorageList otherThan={last} /> : null}
      </div>
    </div>
  );
}

function Destination() {
  const studio = useStudio();
  const output = useStudioState((s) => s.output);
  const proposed = useStudioState((s) => outputName(s.recipe));
  const storage = useStudioState((s) => s.engine.info?.storage);
  const picker = hasDirectoryPicker();
  const noDownloads =
    storage && !storage.available ? (storage.why ?? 'This browser offers no private storage.') : null;
  const noFolder = picker
    ? null
    : 'This browser cannot write into folders; Chrome and Edge on a computer can.';
  const take = (kind: 'downloads' | 'folder') => editSlice(studio, 'output', { kind });
  return (
    <Section title="Save to">
      <div className="stack tight" role="radiogroup" aria-label="Save to">
        <Choice
          name="downloads"
          checked={output.kind === 'downloads'}
          why={noDownloads}
          onChoose={() => take('downloads')}
          title="Downloads"
          text={
            storage?.memoryBytes === undefined
              ? 'Files are kept in this browser; download them when the merge is done, one by one or as a .zip.'
              : `This browser keeps no files for this page. Up to ${formatBytes(storage.memoryBytes)}, downloads from the Hub included, stay in memory; download the result before you close or reload this tab.`
          }
        />
        <Choice
          name="folder"
          checked={output.kind === 'folder'}
          why={noFolder}
          onChoose={() => take('folder')}
          title={output.folder === null ? 'A folder' : `Folder “${output.folder}”`}
          text="Files are written straight to your disk, in a new folder of the name below. Best for large models."
        />
      </div>
      {output.kind === 'folder' && picker ? (
        <div className="row">
          <Button onClick={() => void chooseFolder(studio).catch((e: unknown) => notifyError(studio, e))}>
            <FolderIcon />
            {output.folder === null ? 'Choose folder…' : 'Choose another…'}
          </Button>
          <span className="small quiet">
            {output.folder === null ? 'Otherwise you are asked when you press Merge.' : ''}
          </span>
        </div>
      ) : null}
      <label className="labeled">
        <span>Name</span>
        <input
          className="field mono"
          value={output.name ?? proposed}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => {
            const name = fileName(event.target.value);
            editSlice(studio, 'output', { name: name === '' ? null : name });
          }}
        />
      </label>
    </Section>
  );
}

interface ChoiceProps {
  name: string;
  checked: boolean;
  why: string | null;
  title: string;
  text: string;
  onChoose(): void;
}

function Choice({ name, checked, why, title, text, onChoose }: ChoiceProps) {
  return (
    <label className="choice panel" data-checked={checked || undefined} data-off={why !== null || undefined}>
      <input
        type="radio"
        name="destination"
        value={name}
        checked={checked}
        disabled={why !== null}
        onChange={onChoose}
      />
      <strong>{title}</strong>
      <span className="small quiet">{why ?? text}</span>
    </label>
  );
}

const dtypes: readonly { value: OutDtype | ''; label: string }[] = [
  { value: '', label: 'same dtype as base' },
  { value: 'bfloat16', label: 'bfloat16' },
  { value: 'float16', label: 'float16' },
  { value: 'float32', label: 'float32' },
];

const labels: Partial<Record<Combination, string>> = {
  cat: 'cat: exact, ranks add up',
  gram: 'gram: ranks add up',
  gram_svd: 'gram_svd: cut to a rank',
};

/** Whether LoRAs become a model or a LoRA, and how. */
function AdapterForm() {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const combination = combinationOf(recipe);
  const adapter = recipe.output === 'adapter';
  return (
    <>
      <label className="labeled">
        <span>Output</span>
        <Select
          value={recipe.output}
          options={[
            { value: 'model', label: 'a model' },
            { value: 'adapter', label: 'a LoRA: all contributors are LoRAs of the base' },
          ]}
          disabled={!combination && !adapter}
          title={combination ? undefined : `${methodOf(recipe).title} does not merge LoRAs into a LoRA.`}
          onChange={(output) => editRecipe(studio, (r) => setOutput(r, output))}
        />
      </label>
      {adapter && combination ? (
        <label className="labeled">
          <span>Combination</span>
          <Select
            value={combination}
            options={(COMBINATIONS_OF[recipe.method] ?? []).map((c) => ({ value: c, label: labels[c] ?? c }))}
            onChange={(chosen) => editRecipe(studio, (r) => ({ ...r, combination: chosen }))}
          />
        </label>
      ) : null}
      {adapter && combination?.endsWith('svd') ? (
        <div className="labeled">
          <span>Rank</span>
          <NumberField
            className="field mono shard-field"
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

function Form() {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const models = useStudioState((s) => s.models);
  const problem = recipeProblems(recipe, models, methodOf(recipe)).find((p) => p.place.kind === 'shardBytes');
  return (
    <Section title="Form">
      <AdapterForm />
      <label className="labeled">
        <span>Dtype</span>
        <Select
          value={recipe.outDtype ?? ''}
          options={dtypes}
          onChange={(chosen) =>
            editRecipe(studio, (r) => ({ ...r, outDtype: chosen === '' ? null : chosen }))
          }
        />
      </label>
      {recipe.output === 'adapter' ? null : (
        <div className="labeled">
          <span>Shard size</span>
          <span className="row">
            <NumberField
              className="field mono shard-field"
              label="Shard size in gigabytes"
              value={recipe.shardBytes / 1e9}
              min={SHARD_BYTES.min / 1e9}
              max={SHARD_BYTES.max / 1e9}
              step={0.5}
              invalid={problem !== undefined}
              onChange={(gb) => editRecipe(studio, (r) => ({ ...r, shardBytes: Math.round(gb * 1e9) }))}
            />
            <span className="quiet">GB at most</span>
          </span>
        </div>
      )}
      <Problem>{problem?.remedy}</Problem>
      <ChatTemplateForm />
      <GgufForm />
    </Section>
  );
}

/** How the finished output is run elsewhere, each with its real names. */
function UseIt() {
  const run = useStudioState((s) => (currentRun(s)?.status === 'done' ? currentRun(s) : null));
  const use = run?.report?.use;
  if (!run || !use || use.length === 0) return null;
  const { kind, name } = run.destination;
  return (
    <Section title="Use it">
      <p className="small quiet">
        Run beside the folder <span className="mono">{name}</span>
        {kind === 'folder' ? '' : ', unpacked from the .zip'}
        {run.outputFiles.some((file) => file.endsWith('.gguf'))
          ? '; inside it, what names the GGUF file.'
          : '.'}
      </p>
      {use.map(({ title, code }) => (
        <div key={title} className="use-snippet">
          <div className="row">
            <h3>{title}</h3>
            <CopyButton text={() => code} />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too. */}
          <section className="yaml panel" tabIndex={0} aria-label={`${title}: what to type`}>
            <pre>{code}</pre>
          </section>
        </div>
      ))}
    </Section>
  );
}

const CARD = 'README.md';

/** The model card of the finished run, as the text it is: never drawn as HTML. */
function ModelCard() {
  const studio = useStudio();
  const run = useStudioState(currentRun);
  const [card] = useAnswer<string | null>(null, async () => run && readCard(studio, run), [run]);
  if (card === null) return null;
  return (
    <Section title="Model card" aside={<span className="small quiet">{CARD}, written with the weights</span>}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too. */}
      <section className="yaml model-card panel" tabIndex={0} aria-label="Text of the model card">
        <pre>{card}</pre>
      </section>
      <div className="row">
        <CopyButton text={() => card} />
      </div>
    </Section>
  );
}

/** Null where it cannot be had any more: a folder that is not open, an output that was deleted. */
async function readCard(studio: Studio, run: RunState): Promise<string | null> {
  const { kind, name } = run.destination;
  if (!run.outputFiles.includes(CARD)) return null;
  if (kind === 'folder') {
    const { folder } = studio.transient;
    const file =
      folder &&
      (await folderIn(folder, name)
        .then((opened) => fileIn(opened, CARD))
        .catch(() => null));
    return file ? textOf(await contentOf(file)) : null;
  }
  return textOf(await studio.worker.outputFile(name, CARD));
}

const textOf = async (file: File) => new TextDecoder().decode(await bytesOf(file));
