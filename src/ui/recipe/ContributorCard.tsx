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
import { densityAdvised } from '../../merge/method-conflicts';
import type { ModelInfo } from '../../reports/models';
import { Button, ChevronIcon, CloseIcon, GripIcon, LinkButton, Tip } from '../parts/Button';
import { Toggle } from '../parts/fields';
import { ModelMeta, modelColor, Swatch } from '../parts/Section';
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
import { settingProblem } from '../state/recipe-validation';
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

/** A contributor: one row with its main parameters; its summary and all others are folded below. */
export const ContributorCard = memo(function ContributorCard(props: ContributorCardProps) {
  const { contributor, at, of, model, base, method, chosen, combination } = props;
  const [moving, setMoving] = useState(false);
  const [open, setOpen] = useState(false);
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
  const advised = single && densityAdvised(method, single);
  const fields = enabled ? effectiveSpecs(method.modelParameters, chosen, combination) : [];
  // what a method is about has a value that it recommends; what is folded may be wrong, and is seen then
  const shown = fields.filter(
    ({ name, spec }, i) =>
      i === 0 ||
      open ||
      (spec.kind === 'number' && spec.recommended !== undefined) ||
      settingProblem(spec, settingValue(parameters, name, spec)) !== null,
  );
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
        open={open}
        onOpen={setOpen}
        info={model}
        base={base}
      />
      {model && open ? (
        <ModelMeta model={model} short>
          <Lineage model={model} base={base} />
        </ModelMeta>
      ) : null}
      <ModelAccess of={ref} />
      {shown.map(({ name: parameter, spec }) => (
        <ParameterField
          key={parameter}
          name={parameter}
          spec={spec}
          of={name}
          value={settingValue(parameters, parameter, spec)}
          onEdit={edit}
        />
      ))}
      {enabled && advised !== undefined ? (
        <p className="small toned" data-tone="warn" role="status">
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
  open: boolean;
  onOpen(open: boolean): void;
  info: ModelInfo | undefined;
  base: ModelInfo | undefined;
}

/**
 * Name, place and actions of the contributor as a whole; memoized, so that a step of a slider below does not draw it again.
 */
const CardHead = memo(function CardHead(props: CardHeadProps) {
  const { model: ref, enabled, color, at, of, moving, onMoving, open, onOpen, info, base } = props;
  const studio = useStudio();
  const name = shortName(ref);
  return (
    <div className="row card-head">
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
      {info && !open ? <Lineage model={info} base={base} /> : null}
      <span className="spacer" />
      {open || !enabled ? (
        <Toggle
          checked={enabled}
          onCheckedChange={(on) => editRecipe(studio, (r) => setEnabled(r, ref, on))}
          aria-label={`Merge ${name}`}
        />
      ) : null}
      <Button
        icon={ChevronIcon}
        variant="quiet"
        className="little card-fold"
        tip={open ? 'Only the main settings' : 'All settings, and what the model is'}
        aria-label={`Settings of ${name}`}
        aria-expanded={open}
        onClick={() => onOpen(!open)}
      />
      <Button
        icon={CloseIcon}
        variant="quiet"
        className="little card-remove"
        tip="Remove from the recipe"
        aria-label={`Remove ${name}`}
        onClick={() => editRecipe(studio, (r) => removeContributor(r, ref))}
      />
    </div>
  );
});

/** What a contributor is to the base. */
function Lineage({ model, base }: { model: ModelInfo; base: ModelInfo | undefined }) {
  const badge = lineage(model, base);
  return (
    <Tip text={badge.why}>
      <span className="small quiet rigid toned" data-tone={badge.tone === 'warn' ? 'warn' : undefined}>
        {badge.text}
      </span>
    </Tip>
  );
}

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
      icon={GripIcon}
      ref={button}
      variant="quiet"
      className="little card-grip"
      aria-label={label}
      title="Drag, or press the arrow keys, to change the order"
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.focus();
        onMoving(true);
      }}
    />
  );
}
