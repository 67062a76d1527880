import { type ReactNode, useMemo } from 'react';
import { openOutput } from '../state/models';
import { modelChoices, pairOf } from '../state/roles';
import { currentRun } from '../state/runs';
import { notify, setView } from '../state/studio';
import { chooseToolModels } from '../state/tool-jobs';
import { useParts, useStudio, useStudioState } from '../studio-context';
import { Button, LinkButton, SwapIcon } from './Button';
import { Select } from './fields';

interface ModelSelectProps {
  label: string;
  value: string | null;
  onChange(ref: string): void;
}

const LAST_MERGE = 'last merge';

/** Any opened model, an adapter on its base, or the output of the last merge. */
export function ModelSelect({ label, value, onChange }: ModelSelectProps) {
  const studio = useStudio();
  const { models, recipe } = useParts('models', 'recipe');
  const run = useStudioState(currentRun);
  const opening = useStudioState((s) => s.opening.length > 0);
  const choices = useMemo(() => modelChoices({ models, recipe }), [models, recipe]);
  const merged = run?.status === 'done' ? run : null;
  const isOpen = merged !== null && models.some((m) => m.ref === merged.destination.name);
  const choose = async (chosen: string) => {
    if (chosen !== LAST_MERGE) return onChange(chosen);
    if (!merged) return;
    const ref = await openOutput(studio, merged.destination, merged.outputFiles);
    if (ref === null) return;
    onChange(ref);
    notify(studio, 'note', `Opened ${ref}.`, 'It can be chosen in recipes, too.');
  };
  return (
    <Select
      aria-label={label}
      value={value ?? ''}
      options={value === null ? [{ value: '', label: opening ? 'Opening models…' : 'Choose a model' }] : []}
      groups={[
        ...(['Models', 'Adapters on their base'] as const).map((group) => ({
          label: group,
          options: choices.flatMap((c) => (c.group === group ? [{ value: c.ref, label: c.label }] : [])),
        })),
        {
          label: 'The last merge',
          options: merged && !isOpen ? [{ value: LAST_MERGE, label: merged.destination.name }] : [],
        },
      ]}
      onChange={(chosen) => void choose(chosen)}
    />
  );
}

interface OneModelProps {
  label: string;
  value: string | null;
  onChange(ref: string): void;
  /** Controls of the tool. */
  children: ReactNode;
}

/** The model of a tool that has one, and a way to open others. */
export function OneModel({ label, value, onChange, children }: OneModelProps) {
  return (
    <div className="stack tool-model">
      <span className="label" aria-hidden="true">
        {label}
      </span>
      <div className="row wrap apart">
        <ModelSelect label={label} value={value} onChange={onChange} />
        <OpenModels />
      </div>
      <p className="small quiet">{children}</p>
    </div>
  );
}

/** Opens models that are in no list yet; the recipe stays unchanged. */
export function OpenModels() {
  const studio = useStudio();
  return (
    <LinkButton className="small" onClick={() => setView(studio, { dialog: 'library' })}>
      Open another model…
    </LinkButton>
  );
}

/** The pair as chosen, or as the recipe suggests it. */
export function usePair() {
  const { models, recipe, tools } = useParts('models', 'recipe', 'tools');
  return useMemo(() => pairOf({ models, recipe, tools }), [models, recipe, tools]);
}

/** Base and fine-tune, side by side, and a button that swaps them. */
export function PairPicker() {
  const studio = useStudio();
  const { base, finetuned } = usePair();
  return (
    <div className="pair">
      <div className="stack tight">
        <span className="label" aria-hidden="true">
          Base
        </span>
        <ModelSelect label="Base" value={base} onChange={(ref) => chooseToolModels(studio, { base: ref })} />
      </div>
      <Button
        icon={SwapIcon}
        variant="quiet"
        aria-label="Swap the two models"
        tip="Swap"
        why={base === null || finetuned === null ? 'Choose two models first.' : null}
        onClick={() => chooseToolModels(studio, { base: finetuned, finetuned: base })}
      />
      <div className="stack tight">
        <span className="label" aria-hidden="true">
          Fine-tuned model
        </span>
        <ModelSelect
          label="Fine-tuned model"
          value={finetuned}
          onChange={(ref) => chooseToolModels(studio, { finetuned: ref })}
        />
      </div>
    </div>
  );
}
