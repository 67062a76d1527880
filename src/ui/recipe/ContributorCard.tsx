import { Switch } from 'radix-ui';
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  useCallback,
  useEffect,
  useRef,
  useState,
} from 'react';
import type { Combination } from '../../formats/adapter-combination';
import { formatSetting } from '../../formats/quantity';
import type { MergeMethod } from '../../merge/method';
import { densityAdvised, keepsNothing } from '../../merge/method-conflicts';
import type { ModelInfo } from '../../reports/models';
import { Button } from '../parts/Button';
import { CloseIcon, GripIcon } from '../parts/icons';
import { LinkButton } from '../parts/LinkButton';
import { ModelMeta } from '../parts/ModelMeta';
import { Problem } from '../parts/Problem';
import { modelColor, Swatch } from '../parts/Swatch';
import { Tip } from '../parts/Tip';
import { shortName } from '../state/built-recipe';
import {
  type ContributorState,
  effectiveSpecs,
  moveContributor,
  removeContributor,
  type Settings,
  type SettingValue,
  scalarValue,
  setContributorParameter,
  setEnabled,
  settingValue,
} from '../state/recipe-state';
import { lineage } from '../state/roles';
import { editRecipe } from '../state/studio';
import { useStudio } from '../studio-context';
import { ModelAccess } from './ModelAccess';
import { ParameterField } from './ParameterField';

interface ContributorCardProps {
  contributor: ContributorState;
  /** Its place among so many. */
  at: number;
  of: number;
  model: ModelInfo | undefined;
  base: ModelInfo | undefined;
  method: MergeMethod;
  /** Settings of the method. */
  chosen: Settings;
  /** Combination of LoRAs into a LoRA, where that is the output. */
  combination: Combination | undefined;
}

/** A contributor: its summary, its relation to the base, and its parameters under the current method. */
export const ContributorCard = memo(function ContributorCard(props: ContributorCardProps) {
  const { contributor, at, of, model, base, method, chosen, combination } = props;
  const [moving, setMoving] = useState(false);
  const studio = useStudio();
  const { ref, enabled, color, parameters } = contributor;
  const name = shortName(ref);
  const edit = useCallback(
    (parameter: string, value: SettingValue) =>
      editRecipe(studio, (r) => setContributorParameter(r, ref, parameter, value)),
    [studio, ref],
  );
  const { density: spec } = method.modelParameters;
  const single =
    spec && !Array.isArray(parameters.density)
      ? { density: scalarValue(parameters, 'density', spec) }
      : undefined;
  const nothing = single !== undefined && keepsNothing(method, single);
  const advised = single && densityAdvised(method, single);
  return (
    <li
      className="card"
      data-off={!enabled || undefined}
      data-moving={moving || undefined}
      style={{ '--hue': modelColor(color) } as CSSProperties}
    >
      <CardHead
        model={ref}
        enabled={enabled}
        color={color}
        at={at}
        of={of}
        moving={moving}
        onMoving={setMoving}
      />
      {model ? <Related model={model} base={base} /> : null}
      <ModelAccess of={ref} />
      {enabled
        ? effectiveSpecs(method.modelParameters, chosen, combination).map(({ name: parameter, spec }) => (
            <ParameterField
              key={parameter}
              name={parameter}
              spec={spec}
              of={name}
              value={settingValue(parameters, parameter, spec)}
              onEdit={edit}
            />
          ))
        : null}
      <Problem>
        {enabled &&
          nothing &&
          `With density 0 nothing of ${name} is kept. Choose a density above 0, or switch the model off.`}
      </Problem>
      {enabled && advised !== undefined ? (
        <p className="field-advice" role="status">
          Density 1, mergekit’s default, trims nothing of {name}.{' '}
          <LinkButton onClick={() => edit('density', advised)}>
            Use {formatSetting(advised, 0.01)}, as recommended
          </LinkButton>
        </p>
      ) : null}
    </li>
  );
});

interface CardHeadProps {
  /** Its name in the recipe. */
  model: string;
  enabled: boolean;
  color: number;
  at: number;
  of: number;
  moving: boolean;
  onMoving(moving: boolean): void;
}

/**
 * Name, place and actions of the contributor as a whole; memoized, so that a step of a slider below does not draw it again.
 */
const CardHead = memo(function CardHead(props: CardHeadProps) {
  const { model: ref, enabled, color, at, of, moving, onMoving } = props;
  const studio = useStudio();
  const name = shortName(ref);
  return (
    <div className="card-head">
      {of > 1 ? (
        <Grip
          label={`Place of ${name}, ${at + 1} of ${of}`}
          at={at}
          moving={moving}
          onMove={(to) => editRecipe(studio, (r) => moveContributor(r, ref, to))}
          onMoving={onMoving}
        />
      ) : null}
      <Swatch color={color} />
      <Tip text={ref}>
        <strong className="truncate">{name}</strong>
      </Tip>
      <span className="spacer" />
      <Switch.Root
        className="switch"
        checked={enabled}
        onCheckedChange={(on) => editRecipe(studio, (r) => setEnabled(r, ref, on))}
        aria-label={`Merge ${name}`}
      >
        <Switch.Thumb className="switch-thumb" />
      </Switch.Root>
      <Button
        variant="quiet"
        iconOnly
        className="card-remove"
        tip="Remove from the recipe"
        aria-label={`Remove ${name}`}
        onClick={() => editRecipe(studio, (r) => removeContributor(r, ref))}
      >
        <CloseIcon />
      </Button>
    </div>
  );
});

/** Summary of a contributor, and its relation to the base. */
const Related = memo(function Related({ model, base }: { model: ModelInfo; base: ModelInfo | undefined }) {
  const badge = lineage(model, base);
  return (
    <ModelMeta model={model} short>
      <Tip text={badge.why}>
        <span className="tag" data-tone={badge.tone}>
          {badge.text}
        </span>
      </Tip>
    </ModelMeta>
  );
});

interface GripProps {
  label: string;
  /** Place of its card in the list, from 0. */
  at: number;
  moving: boolean;
  onMove(to: number): void;
  onMoving(moving: boolean): void;
}

/** Moves its card among the others: dragged, or by the arrow keys. The others make way at once. */
function Grip({ label, at, moving, onMove, onMoving }: GripProps) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!moving) return;
    // on the window: a card that changes its place in the page would lose the pointer
    const drag = ({ clientY }: PointerEvent) => {
      const cards = [...(button.current?.closest('ul')?.children ?? [])];
      // its place is behind every other card whose middle it has passed
      const passed = cards.filter((card, i) => {
        const { top, height } = card.getBoundingClientRect();
        return i !== at && top + height / 2 < clientY;
      });
      if (passed.length !== at) onMove(passed.length);
    };
    const end = () => onMoving(false);
    const stop = new AbortController();
    const { signal } = stop;
    addEventListener('pointermove', drag, { signal });
    addEventListener('pointerup', end, { signal });
    addEventListener('pointercancel', end, { signal });
    return () => stop.abort();
  }, [moving, at, onMove, onMoving]);
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowUp' ? -1 : event.key === 'ArrowDown' ? 1 : 0;
    if (by === 0) return;
    event.preventDefault();
    onMove(at + by);
  };
  return (
    <Button
      ref={button}
      variant="quiet"
      iconOnly
      className="card-grip"
      aria-label={label}
      title="Drag, or press the arrow keys, to change the order"
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.focus();
        onMoving(true);
      }}
    >
      <GripIcon />
    </Button>
  );
}
