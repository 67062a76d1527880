import { type KeyboardEvent, lazy, memo, Suspense, useCallback, useId, useRef } from 'react';
import { formatSetting } from '../../formats/quantity';
import type { NumberSpec, ParameterSpec } from '../../merge/method';
import { Button, CurveIcon, LinkButton, Tip } from '../parts/Button';
import { NumberField, Select, Toggle } from '../parts/fields';
import { Problem } from '../parts/Message';
import { BrokenName } from '../parts/Section';
import { isRecipeOf } from '../state/recipe-identity';
import type { SettingValue } from '../state/recipe-state';
import { curveStep, mayCurve, settingProblem, snapped } from '../state/recipe-validation';
import { currentRun } from '../state/runs';
import type { StudioState } from '../state/studio';
import { useStudioState } from '../studio-context';

interface NumberSliderProps {
  value: number;
  min: number;
  max: number;
  step: number;
  label: string;
  describedBy?: string | undefined;
  onChange(value: number): void;
}

/** Steps of keys that take ten, with Shift or by themselves. */
const TEN = { ArrowRight: 10, ArrowUp: 10, ArrowLeft: -10, ArrowDown: -10 };
const PAGES = { PageUp: 10, PageDown: -10 };

/** A slider; with Shift ten steps at once. */
function NumberSlider({ value, min, max, step, label, describedBy, onChange }: NumberSliderProps) {
  const shown = Math.min(max, Math.max(min, value));
  const onKeyDown = (event: KeyboardEvent) => {
    const keys: Record<string, number> = { ...PAGES, ...(event.shiftKey ? TEN : {}) };
    const steps = keys[event.key];
    if (steps === undefined) return;
    event.preventDefault();
    onChange(Number(Math.min(max, Math.max(min, shown + steps * step)).toFixed(10)));
  };
  return (
    <input
      type="range"
      className="slider"
      aria-label={label}
      aria-describedby={describedBy}
      min={min}
      max={max}
      step={step}
      value={shown}
      onChange={({ target }) => onChange(target.valueAsNumber)}
      onKeyDown={onKeyDown}
    />
  );
}

const CurveEditor = lazy(() => import('./CurveEditor').then((m) => ({ default: m.CurveEditor })));
const TextParameter = lazy(() => import('./TextParameter').then((m) => ({ default: m.TextParameter })));

interface ParameterFieldProps {
  name: string;
  spec: ParameterSpec;
  value: SettingValue;
  /** Whose parameter it is, for the spoken label: `weight of kitchen`. */
  of?: string;
  /** The same function every time: a step of one slider draws no other parameter. */
  onEdit(name: string, value: SettingValue): void;
}

/** One parameter, drawn from its spec alone: a number as slider and field or as a curve, a switch, or a choice. */
export const ParameterField = memo(function ParameterField(props: ParameterFieldProps) {
  const { name, spec, value, of, onEdit } = props;
  const onChange = useCallback((next: SettingValue) => onEdit(name, next), [name, onEdit]);
  const helpId = useId();
  const label = of ? `${spec.label} of ${of}` : spec.label;
  const problem = settingProblem(spec, value);
  return (
    <div className="parameter">
      <ParameterLabel spec={spec} />
      {spec.kind === 'number' ? (
        <NumberParameter spec={spec} label={label} helpId={helpId} value={value} onChange={onChange} />
      ) : spec.kind === 'boolean' ? (
        <span className="row small parameter-wide">
          <Toggle
            checked={value === true}
            onCheckedChange={onChange}
            aria-label={label}
            aria-describedby={helpId}
          />
          <span className="faint">{value === true ? 'on' : 'off'}</span>
        </span>
      ) : spec.kind === 'text' ? (
        <Suspense fallback={<span className="row small parameter-wide" />}>
          <TextParameter
            label={label}
            self={spec.default}
            helpId={helpId}
            value={String(value)}
            onChange={onChange}
          />
        </Suspense>
      ) : (
        <Select
          className="select parameter-wide"
          value={String(value)}
          aria-label={label}
          aria-describedby={helpId}
          options={spec.choices}
          onChange={onChange}
        />
      )}
      <span id={helpId} className="visually-hidden">
        {helpOf(spec)}
      </span>
      <Problem className="whole">{problem}</Problem>
    </div>
  );
});

function helpOf(spec: ParameterSpec): string {
  return spec.kind === 'number' && spec.recommended !== undefined
    ? `${spec.help} Recommended for this method: ${spec.recommended}; mergekit’s default is 1.0.`
    : spec.help;
}

const ParameterLabel = memo(function ParameterLabel({ spec }: { spec: ParameterSpec }) {
  return (
    <Tip text={helpOf(spec)}>
      <span className="parameter-label">
        <BrokenName name={spec.label} />
      </span>
    </Tip>
  );
});

interface NumberParameterProps {
  spec: NumberSpec;
  label: string;
  helpId: string;
  value: SettingValue;
  onChange(value: SettingValue): void;
}

/** A number: as slider and field, drawn over the layers, or left to be searched for. */
function NumberParameter({ spec, label, helpId, value, onChange }: NumberParameterProps) {
  const curve = Array.isArray(value) ? value : null;
  const tuned = useStudioState((s) => (value === 'auto' ? tunedLambda(s) : null));
  const latest = useRef(value);
  latest.current = value;
  const toggleCurve = useCallback(() => {
    const now = latest.current;
    onChange(Array.isArray(now) ? flattened(now, spec) : [Number(now), Number(now)]);
  }, [spec, onChange]);
  return (
    <>
      {curve ? (
        <CurveExtent points={curve} step={curveStep(spec)} />
      ) : value === 'auto' ? (
        <span className="faint">
          {tuned === null ? '' : `${formatSetting(tuned, spec.slider?.step)}, `}tuned on the calibration text
        </span>
      ) : spec.slider ? (
        <NumberSlider
          {...spec.slider}
          value={Number(value)}
          label={label}
          describedBy={helpId}
          onChange={onChange}
        />
      ) : (
        <span />
      )}
      {curve || value === 'auto' ? null : (
        <span className="parameter-number">
          <NumberField
            value={Number(value)}
            min={spec.min}
            max={spec.max}
            step={spec.slider?.step}
            label={`${label}, number`}
            describedBy={helpId}
            invalid={settingProblem(spec, value) !== null}
            onChange={onChange}
          />
        </span>
      )}
      {mayCurve(spec) && value !== 'auto' ? (
        <CurveToggle label={label} pressed={curve !== null} onToggle={toggleCurve} />
      ) : null}
      {curve ? (
        <Suspense fallback={<div className="curve curve-space" />}>
          <CurveEditor points={curve} spec={spec} label={label} onChange={onChange} />
        </Suspense>
      ) : null}
      {spec.auto && !curve ? (
        <LinkButton
          className="parameter-wide"
          onClick={() => onChange(value === 'auto' ? (tuned ?? spec.default ?? 1) : 'auto')}
        >
          {value === 'auto' ? `set ${spec.label} by hand` : `auto-tune ${spec.label}`}
        </LinkButton>
      ) : null}
    </>
  );
}

/** λ that was found when the current recipe was merged; null where it was not. */
function tunedLambda(state: StudioState): number | null {
  const run = currentRun(state);
  const found = run?.report?.ahead?.lambda?.chosen;
  return found !== undefined && isRecipeOf(run!.recipe, state.recipe, state.models) ? found : null;
}

interface CurveToggleProps {
  label: string;
  pressed: boolean;
  onToggle(): void;
}

/** It does not follow the value: a step of the slider does not draw it. */
const CurveToggle = memo(function CurveToggle({ label, pressed, onToggle }: CurveToggleProps) {
  return (
    <Button
      icon={CurveIcon}
      variant="quiet"
      className="little"
      tip={pressed ? 'One value for all layers' : 'Set it per layer'}
      aria-label={`Set ${label} per layer`}
      aria-pressed={pressed}
      onClick={onToggle}
    />
  );
});

function CurveExtent({ points, step }: { points: readonly number[]; step: number }) {
  const text = (value: number) => formatSetting(value, step);
  return (
    <span className="curve-extent numeric">
      {text(Math.min(...points))} – {text(Math.max(...points))}
    </span>
  );
}

/** The mean of the points: the one value nearest to a curve. */
function flattened(points: readonly number[], spec: NumberSpec): number {
  return snapped(points.reduce((sum, p) => sum + p, 0) / points.length, spec);
}
