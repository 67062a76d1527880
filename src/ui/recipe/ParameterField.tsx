import { Switch } from 'radix-ui';
import { type CSSProperties, useId } from 'react';
import type { ParameterScalar } from '../../formats/recipe';
import type { ParameterSpec } from '../../merge/method';
import { NumberField } from '../parts/NumberField';
import { NumberSlider } from '../parts/NumberSlider';
import { Tip } from '../parts/Tip';
import { settingProblem } from '../state/recipe-validation';

interface ParameterFieldProps {
  spec: ParameterSpec;
  value: ParameterScalar;
  /** Whose parameter it is, for the spoken label: `weight of kitchen`. */
  of?: string;
  /** CSS colour of the slider. */
  colour?: string;
  onChange(value: ParameterScalar): void;
}

/** One parameter, drawn from its spec alone: a number as slider and field, a switch, or a choice. */
export function ParameterField({ spec, value, of, colour, onChange }: ParameterFieldProps) {
  const helpId = useId();
  const labelId = useId();
  const label = of ? `${spec.label} of ${of}` : spec.label;
  const problem = settingProblem(spec, value);
  const hue = colour ? ({ '--hue': colour } as CSSProperties) : undefined;
  return (
    <div className="parameter" style={hue}>
      <Tip text={spec.help}>
        <span className="parameter-label" id={labelId}>
          {spec.label}
        </span>
      </Tip>
      {spec.kind === 'number' ? (
        <>
          {value === 'auto' ? (
            <span className="faint">searched for on the calibration text</span>
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
          {value === 'auto' ? null : (
            <NumberField
              value={Number(value)}
              min={spec.min}
              max={spec.max}
              step={spec.slider?.step}
              label={`${label}, number`}
              describedBy={helpId}
              invalid={problem !== null}
              onChange={onChange}
            />
          )}
          {spec.auto ? (
            <button
              type="button"
              className="link parameter-wide"
              onClick={() => onChange(value === 'auto' ? (spec.default ?? 1) : 'auto')}
            >
              {value === 'auto' ? `set ${spec.label} by hand` : `search for the best ${spec.label}`}
            </button>
          ) : null}
        </>
      ) : spec.kind === 'boolean' ? (
        <span className="parameter-wide">
          <Switch.Root
            className="switch"
            checked={value === true}
            onCheckedChange={onChange}
            aria-label={label}
            aria-describedby={helpId}
          >
            <Switch.Thumb className="switch-thumb" />
          </Switch.Root>
          <span className="faint">{value === true ? 'on' : 'off'}</span>
        </span>
      ) : spec.kind === 'text' ? (
        <input
          className="field parameter-wide"
          value={String(value)}
          aria-label={label}
          aria-describedby={helpId}
          aria-invalid={problem !== null}
          onChange={(event) => onChange(event.target.value)}
        />
      ) : (
        <select
          className="select parameter-wide"
          value={String(value)}
          aria-label={label}
          aria-describedby={helpId}
          onChange={(event) => onChange(event.target.value)}
        >
          {spec.choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      )}
      <span id={helpId} className="visually-hidden">
        {spec.help}
      </span>
      {problem ? (
        <span className="field-problem parameter-problem" role="alert">
          {problem}
        </span>
      ) : null}
    </div>
  );
}
