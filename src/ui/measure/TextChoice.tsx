import { useMemo } from 'react';
import { formatBytes } from '../../formats/quantity';
import { Button, CheckIcon, FileButton, PlusIcon } from '../parts/Button';
import { Chip, LabeledNumber, Select } from '../parts/fields';
import { ErrorCard } from '../parts/Message';
import { PopoverFrame } from '../parts/PopoverFrame';
import type { MeasureText } from '../state/measure-state';
import { addTaskFiles, editTasks, toggleTask } from '../state/measure-tasks';
import { addText, chooseText, openSampleTexts, removeText } from '../state/measure-texts';
import { isOfSample } from '../state/sample-texts';
import { useStudio, useStudioState } from '../studio-context';
import { AddText } from './AddText';

/** Which texts are measured on: the sample's for the sample, pasted ones, files, datasets of the Hub. */
export function TextChoice() {
  const studio = useStudio();
  const all = useStudioState((s) => s.measure.texts);
  const opening = useStudioState((s) => s.measure.opening);
  const error = useStudioState((s) => s.measure.openError);
  const busy = useStudioState((s) => s.measure.running.size > 0);
  const isSample = useStudioState(isOfSample);
  const texts = isSample ? all : all.filter(({ origin }) => origin === 'own');
  return (
    <>
      <fieldset className="row wrap tight chips">
        <legend className="visually-hidden">Texts to measure on</legend>
        {texts.map((text) => (
          <TextChip key={text.id} text={text} busy={busy} />
        ))}
        {opening === 'opening' ? <span className="small quiet">Opening the sample texts…</span> : null}
        <PopoverFrame
          label="Add a text"
          className="add-text"
          trigger={
            <Button icon={PlusIcon} variant="quiet">
              text
            </Button>
          }
        >
          <div className="row wrap">
            <AddText take={async (name, text) => void (await addText(studio, name, text))} multiple />
          </div>
        </PopoverFrame>
      </fieldset>
      {error ? (
        <div className="stack">
          <ErrorCard error={error} />
          <div>
            <Button onClick={() => void openSampleTexts(studio)}>Open the sample texts again</Button>
          </div>
        </div>
      ) : null}
    </>
  );
}

function TextChip({ text: { id, name, text, chosen, origin }, busy }: { text: MeasureText; busy: boolean }) {
  const studio = useStudio();
  const bytes = useMemo(() => new TextEncoder().encode(text).length, [text]);
  return (
    <Chip
      name={name}
      on={chosen}
      title={formatBytes(bytes)}
      onToggle={() => chooseText(studio, id, !chosen)}
      why={busy ? 'Measuring.' : null}
      onRemove={origin === 'own' ? () => removeText(studio, id) : undefined}
    >
      {chosen ? <CheckIcon /> : null}
      <span className="truncate">{name}</span>
    </Chip>
  );
}

/** Which tasks models are scored on: the chosen ones as chips, the others behind a button. */
export function TaskChoice() {
  const studio = useStudio();
  const { shipped, chosen, own } = useStudioState((s) => s.measure.tasks);
  const busy = useStudioState((s) => s.measure.running.size > 0);
  const titleOf = (name: string) => shipped?.find((task) => task.name === name)?.title ?? name;
  return (
    <fieldset className="row wrap tight chips">
      <legend className="visually-hidden">Tasks to score</legend>
      {chosen.map((name) => (
        <Chip
          key={name}
          name={titleOf(name)}
          on
          why={busy ? 'Measuring.' : null}
          onRemove={() => toggleTask(studio, name)}
        >
          <CheckIcon />
          <span className="truncate">{titleOf(name)}</span>
        </Chip>
      ))}
      <PopoverFrame
        label="Tasks"
        className="add-text"
        trigger={
          <Button icon={PlusIcon} variant="quiet">
            task
          </Button>
        }
      >
        <Tasks own={own.map(({ name }) => name)} />
      </PopoverFrame>
    </fieldset>
  );
}

/** All tasks, and which of their items are scored. */
function Tasks({ own }: { own: readonly string[] }) {
  const studio = useStudio();
  const { shipped, chosen, subset, limit, fewshot } = useStudioState((s) => s.measure.tasks);
  const isSample = useStudioState(isOfSample);
  // the sample's task is of what the sample was trained on
  const offered = (shipped ?? []).filter(({ dataset, embeds }) => dataset !== null || embeds || isSample);
  const { subsets } = offered.find((task) => chosen.includes(task.name) && task.subsets.length > 0) ?? {};
  return (
    <>
      <p className="small quiet">Accuracy as lm-evaluation-harness counts it, its rows from the Hub.</p>
      <div className="row wrap tight chips">
        {[...offered, ...own.map((name) => ({ name, title: name }))].map(({ name, title }) => (
          <Chip
            key={name}
            name={title}
            on={chosen.includes(name)}
            onToggle={() => toggleTask(studio, name)}
          />
        ))}
        <FileButton
          label="Own task"
          multiple
          accept=".jsonl,.ndjson,.json,.tsv"
          onFiles={(picked) =>
            void addTaskFiles(
              studio,
              picked.map(({ file }) => file),
            )
          }
        >
          Own task…
        </FileButton>
      </div>
      {subsets ? (
        <Select
          className="field"
          aria-label="MMLU subset"
          value={subset || (subsets[0] ?? '')}
          options={subsets.map((name) => ({ value: name, label: name.replaceAll('_', ' ') }))}
          onChange={(next) => editTasks(studio, { subset: next })}
        />
      ) : null}
      <div className="row wrap">
        <LabeledNumber
          label="items per task"
          value={limit}
          min={1}
          max={100_000}
          onChange={(next) => editTasks(studio, { limit: next })}
        />
        <LabeledNumber
          label="few-shot examples"
          value={fewshot}
          min={0}
          max={32}
          onChange={(next) => editTasks(studio, { fewshot: next })}
        />
      </div>
    </>
  );
}
