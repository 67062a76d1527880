/** The form of a tool, drawn from its options: a field each by kind, with range, default and help as the command has them. */

import { useId } from 'react';
import {
  capital,
  isInRange,
  labelOf,
  type NumberOption,
  type Option,
  type Options,
  type OptionValues,
  shownOptions,
} from '../../reports/option';
import { TOOLS, type ToolId, type ToolValues } from '../../tools';
import { editTool } from '../state/tool-jobs';
import { useStudio, useStudioState } from '../studio-context';
import { LabeledNumber, named, Segmented, Select, Toggle } from './fields';

interface OptionsFormProps<S extends Options> {
  options: S;
  values: OptionValues<S>;
  /** The fields to draw; absent: all that the studio has. */
  names?: readonly (keyof S & string)[];
  /** One of those that exclude each other has to be given here, if not everywhere. */
  needed?: boolean;
  onChange(change: Partial<OptionValues<S>>): void;
}

type Values = Readonly<Record<string, unknown>>;

interface ToolFormProps<T extends ToolId> extends Pick<OptionsFormProps<Options>, 'needed'> {
  tool: T;
  names?: readonly (keyof ToolValues[T] & string)[];
  /** Shown in place of those in the form. */
  shown?: Partial<ToolValues[T]>;
}

/** The form of a tool as far as it is filled in. */
export function ToolForm<T extends ToolId>({ tool, shown, ...props }: ToolFormProps<T>) {
  const studio = useStudio();
  const values = useStudioState((s) => s.tools.values[tool]);
  const { options } = TOOLS.find(({ id }) => id === tool)! as { options: Options };
  const edit = (change: Values) => editTool(studio, tool, change as Partial<ToolValues[T]>);
  return <OptionsForm options={options} values={{ ...values, ...shown }} onChange={edit} {...props} />;
}

/** No option of a group. */
const NONE = '–';

/** Options that exclude each other are one choice, with the field of the chosen one beside it. */
export function OptionsForm<S extends Options>(props: OptionsFormProps<S>) {
  const { options, values, names, needed = false, onChange } = props;
  const shown = shownOptions(options, values).filter(([name]) => !names || names.includes(name));
  const edit = (change: Values) => onChange(change as Partial<OptionValues<S>>);
  const groups = new Set<string>();
  return (
    <div className="row wrap apart tool-fields">
      {shown.map(([name, option]) => {
        const { either } = option;
        if (either === undefined) {
          return (
            <Field key={name} name={name} option={option} value={(values as Values)[name]} edit={edit} />
          );
        }
        if (groups.has(either)) return null;
        groups.add(either);
        const members = shown.filter(([, member]) => member.either === either);
        return <Either key={name} label={either} {...{ members, values, edit, needed }} />;
      })}
    </div>
  );
}

interface FieldProps {
  name: string;
  option: Option;
  value: unknown;
  edit(change: Values): void;
}

function Field({ name, option, value, edit }: FieldProps) {
  const label = labelOf(name, option);
  const id = useId();
  switch (option.kind) {
    case 'number':
    case 'integer': {
      const shown = typeof value === 'number' ? value : (option.default ?? option.min ?? 0);
      const unit = option.unit === 'bytes' ? 1e6 : 1;
      return (
        <span title={option.help}>
          <LabeledNumber
            label={label}
            value={shown / unit}
            {...boundsOf(option)}
            invalid={!isInRange(option, shown)}
            onChange={(next) => edit({ [name]: unit === 1 ? next : Math.round(next * unit) })}
          />
        </span>
      );
    }
    case 'boolean':
      return (
        <label className="row small quiet" htmlFor={id} title={option.help}>
          <Toggle
            id={id}
            checked={value === true}
            onCheckedChange={(next) => edit({ [name]: next })}
            aria-description={option.help}
          />
          <span>{capital(label)}</span>
        </label>
      );
    case 'choice': {
      const { values, labels } = option;
      const choices = labels
        ? values.map((one, i) => ({ value: one, label: labels[i] ?? one }))
        : named(values);
      const shown = typeof value === 'string' ? value : (values[0] ?? '');
      const onChange = (next: string) => edit({ [name]: next });
      return (
        <div className="row small quiet tool-field" title={option.help}>
          <span aria-hidden="true">{label}</span>
          <Select aria-label={capital(label)} value={shown} options={choices} onChange={onChange} />
        </div>
      );
    }
    default:
      return (
        <label className="row small quiet tool-field" title={option.help}>
          <span aria-hidden="true">{label}</span>
          <input
            className="field mono tool-text"
            aria-label={capital(label)}
            spellCheck={false}
            autoComplete="off"
            value={Array.isArray(value) ? value.join(' ') : typeof value === 'string' ? value : ''}
            onChange={({ target }) =>
              edit({ [name]: option.kind === 'list' ? target.value.split(/[\s,]/) : target.value })
            }
          />
        </label>
      );
  }
}

interface EitherProps {
  label: string;
  members: readonly [string, Option][];
  values: Values;
  edit(change: Values): void;
  needed: boolean;
}

function Either({ label, members, values, edit, needed: isNeeded }: EitherProps) {
  const chosen = members.find(([name]) => values[name] !== undefined);
  const needed = isNeeded || members.some(([, { needed }]) => needed);
  const choices = members.map(([name]) => ({ value: name, label: capital(name) }));
  return (
    <>
      <Segmented
        label={capital(label)}
        value={chosen?.[0] ?? NONE}
        options={needed ? choices : [...choices, { value: NONE, label: 'No target' }]}
        onChange={(next) =>
          edit(
            Object.fromEntries(members.map(([name, { start }]) => [name, name === next ? start : undefined])),
          )
        }
      />
      {chosen ? <Field name={chosen[0]} option={chosen[1]} value={values[chosen[0]]} edit={edit} /> : null}
      {chosen ? <p className="small quiet whole">{chosen[1].help}</p> : null}
    </>
  );
}

/** Bounds and step of a field; a value out of bounds may be typed, and the field shows the error. */
function boundsOf({ kind, unit, min, max, above, below, default: value = 0 }: NumberOption) {
  if (unit === 'bytes') return { min: 0.5, max: 1e5, step: 0.5 };
  const step = kind === 'integer' ? undefined : value > 0 && value < 0.01 ? value : 0.01;
  return { min: min ?? above ?? 0, max: max ?? below ?? 1e6, step };
}
