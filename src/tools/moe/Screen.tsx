import '../../ui/styles/tools.css';
import { useEffect, useMemo } from 'react';
import { formatBytes, formatCounted, formatParameters } from '../../formats/quantity';
import { canonicalRef, repositoriesOf } from '../../formats/recipe';
import { optionsProblem } from '../../reports/option';
import { Button, FileButton } from '../../ui/parts/Button';
import { useAttempt } from '../../ui/parts/hooks';
import { Message, Problem, ToolEnd } from '../../ui/parts/Message';
import { ToolForm } from '../../ui/parts/OptionsForm';
import { SavedFiles, SaveTo } from '../../ui/parts/SavedFiles';
import { type Cost, Costs, Section, Sentences } from '../../ui/parts/Section';
import { ToolBar, ToolHead } from '../../ui/parts/ToolBar';
import { YamlText } from '../../ui/parts/YamlText';
import { whyNoTool } from '../../ui/state/job';
import { openSampleTexts } from '../../ui/state/measure-texts';
import { openHub } from '../../ui/state/models';
import { choiceName, chosenModel, fileNameOf, modelChoices } from '../../ui/state/roles';
import type { StudioState } from '../../ui/state/studio';
import { beginTool, editTool, whyNotSaved } from '../../ui/state/tool-jobs';
import { useStudio, useStudioState } from '../../ui/studio-context';
import { moeOptions } from './options';
import { formatMoeRecipe, moeModels, parseMoeRecipe, renameModels } from './recipe';
import type { MoeFigures, MoePlanReport } from './report';

const FIELDS = ['gguf', 'ggufOnly', 'shardBytes'] as const;

/** A mixture of experts out of dense models, by its recipe. */
export function Screen() {
  const studio = useStudio();
  const form = useStudioState((s) => s.tools.values.moe);
  const text = useStudioState(textOf);
  const { read, problems } = useMemo(() => parseMoeRecipe(text), [text]);
  const models = useStudioState((s) => s.models);
  const refs = useMemo(
    () => new Map(read ? moeModels(read).map((name) => [name, openedAs(name, models)]) : []),
    [read, models],
  );
  const missing = [...refs].flatMap(([name, ref]) => (ref === null ? [name] : []));
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const [planned, job] = [
    useStudioState((s) => s.tools.jobs.planMoe),
    useStudioState((s) => s.tools.jobs.writeMoe),
  ];
  const problem = optionsProblem(moeOptions, form);
  useEffect(() => {
    void openSampleTexts(studio);
  }, [studio]);
  const edit = (recipe: string) => editTool(studio, 'moe', { recipe });
  const why =
    busy ??
    (read ? null : 'Correct the recipe first.') ??
    (missing.length > 0 ? 'Open its models first.' : null) ??
    problem;
  const name = read ? fileNameOf(read.baseModel, 'experts') : null;
  const asked = () => {
    // what was suggested stays when more models are open
    edit(text);
    return { recipe: renameModels(read!, refs as ReadonlyMap<string, string>), form };
  };
  return (
    <div className="stack roomy screen tool-screen">
      <Section
        title="1 · Recipe of experts"
        aside={
          <FileButton
            label="Open a recipe of experts"
            accept=".yml,.yaml,text/yaml"
            onFiles={([first]) => void first?.file.text().then(edit)}
          >
            Open…
          </FileButton>
        }
      >
        <p className="small quiet">
          Each expert gives its MLPs, the base everything else. Its prompts, questions or beginnings of texts
          that are for it, say what a router sends to it. As mergekit-moe reads it.
        </p>
        <div className="stack recipe-text">
          <YamlText label="Recipe of experts as YAML" text={text} problems={problems} onChange={edit}>
            {missing.map((name) => (
              <Missing key={name} name={name} />
            ))}
          </YamlText>
        </div>
      </Section>
      <Section title="2 · Write the mixture">
        <ToolForm tool="moe" names={FIELDS} />
        <Problem>{problem}</Problem>
        <div className="row wrap apart">
          <Button why={why} onClick={() => void beginTool(studio, 'planMoe', asked())}>
            Plan
          </Button>
          <Button
            variant="primary"
            why={why ?? unsaved}
            onClick={() => void beginTool(studio, 'writeMoe', asked(), name!)}
          >
            Write
          </Button>
          <SaveTo name={name} />
        </div>
        <ToolBar kinds={['planMoe', 'writeMoe']} />
        {planned ? <ToolEnd run={planned} stopped="Stopped." /> : null}
        {planned?.report && !job ? <Planned report={planned.report} /> : null}
        {job ? (
          <>
            <ToolHead title={`Experts on ${choiceName(job.request.recipe.baseModel)}`} report={job.report} />
            <ToolEnd run={job} stopped="Stopped. Nothing was saved." />
            {job.report ? <Costs items={figures(job.report.figures)} /> : null}
            {job.report ? <Sentences words={job.report.notes} /> : null}
            {job.saved ? <SavedFiles saved={job.saved} /> : null}
          </>
        ) : null}
      </Section>
    </div>
  );
}

function Planned({ report }: { report: MoePlanReport }) {
  const { bytesToDownload, bytesToWrite, peakBytes, problems } = report;
  const costs: Cost[] = [
    ['To download', formatBytes(bytesToDownload), ''],
    ['To write', formatBytes(bytesToWrite), ''],
    ['Memory', formatBytes(peakBytes), 'at its peak'],
  ];
  return (
    <>
      <Costs items={[...figures(report), ...costs]} />
      {problems
        .filter(({ severity }) => severity !== 'note')
        .map(({ severity, message, remedy }) => (
          <Message key={message} tone={severity} title={message} hint={remedy} />
        ))}
    </>
  );
}

function figures({ title, experts, expertsPerToken, parameters }: MoeFigures): Cost[] {
  return [
    ['Form', title, `${formatCounted(experts, 'expert')}, ${expertsPerToken} a token`],
    ['Parameters', formatParameters(parameters.all), `${formatParameters(parameters.active)} active`],
  ];
}

/** A model that the recipe names and that is not open. */
function Missing({ name }: { name: string }) {
  const studio = useStudio();
  const { working, error, attempt, cancel } = useAttempt();
  const open = async (signal: AbortSignal) => {
    for (const one of repositoriesOf(name)) await openHub(studio, one, signal);
  };
  return (
    <Message
      tone="warning"
      title={error?.message ?? `${name} is not open.`}
      hint={error?.hint ?? 'Open its folder with + Add model, or get it from the Hub.'}
      actions={
        <Button onClick={() => (working ? cancel() : void attempt('open', open))}>
          {working ? 'Cancel opening' : 'Get it from the Hub'}
        </Button>
      }
    />
  );
}

/** The reference of an opened model that a recipe names; null where it is not open. */
function openedAs(name: string, models: StudioState['models']): string | null {
  const found = repositoriesOf(name).map(
    (one) => models.find(({ ref }) => ref === one) ?? models.find(({ ref }) => ref.startsWith(`${one}@`)),
  );
  return found.every((model) => model !== undefined) ? found.map(({ ref }) => ref).join('+') : null;
}

/** The recipe as it was typed, else one of the opened models. */
function textOf(state: StudioState): string {
  const { recipe } = state.tools.values.moe;
  const base = chosenModel(state, null);
  if (recipe !== undefined || base === null) return recipe ?? '';
  const others = modelChoices(state).filter(({ ref }) => canonicalRef(ref) !== base);
  return formatMoeRecipe({
    ...{
      baseModel: base,
      gateMode: 'hidden',
      expertsPerToken: Math.min(2, others.length),
      sharedExperts: [],
    },
    experts: others.slice(0, MOST_SUGGESTED).map(({ ref }) => ({
      sourceModel: ref,
      positivePrompts: samplePrompts(state, ref),
      negativePrompts: [],
    })),
    ...{ seed: 0, ignored: [] },
  });
}

/** How the text of a sample model begins its parts; nothing of a model that is no sample. */
function samplePrompts({ measure }: StudioState, ref: string): string[] {
  const { text = '' } =
    measure.texts.find(({ origin, name }) => origin === 'sample' && ref.endsWith(`samples/${name}`)) ?? {};
  return text
    .split('\n\n')
    .slice(0, 3)
    .flatMap((part) => part.split('\n', 1).filter(Boolean));
}

const MOST_SUGGESTED = 8;
