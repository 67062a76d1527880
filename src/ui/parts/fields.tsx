import { ToggleGroup } from 'radix-ui';
import { type ComponentProps, type KeyboardEvent, type ReactNode, useState } from 'react';
import { formatSetting } from '../../formats/quantity';
import { Button, CloseIcon } from './Button';

interface ToggleProps extends Omit<ComponentProps<'input'>, 'onChange'> {
  checked: boolean;
  /** Some of what it stands for is off. */
  mixed?: boolean;
  onCheckedChange(checked: boolean): void;
}

/** A switch. */
export function Toggle({ mixed = false, onCheckedChange, ...rest }: ToggleProps) {
  return (
    <input
      {...rest}
      type="checkbox"
      role="switch"
      aria-checked={rest.checked}
      className="switch"
      data-mixed={(rest.checked && mixed) || undefined}
      onChange={({ target }) => onCheckedChange(target.checked)}
    />
  );
}

interface CheckProps {
  label: string;
  checked: boolean;
  onChange(checked: boolean): void;
}

/** A box to tick, its words after it. */
export function Check({ label, checked, onChange }: CheckProps) {
  return (
    <label className="row tight small">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      {label}
    </label>
  );
}

interface SelectProps<T extends string>
  extends Omit<ComponentProps<'select'>, 'value' | 'onChange' | 'children'> {
  value: T;
  options?: readonly SelectOption<T>[];
  /** Options below those, under a name; groups without any are left out. */
  groups?: readonly { label: string; options: readonly SelectOption<T>[] }[];
  onChange(value: T): void;
}

interface SelectOption<T extends string> {
  value: T;
  label: string;
}

/** One of many, from a list that opens. */
export function Select<T extends string>(props: SelectProps<T>) {
  const { value, options = [], groups = [], onChange, className = 'select', ...rest } = props;
  const listed = (of: readonly SelectOption<T>[]) =>
    of.map((option) => (
      <option key={option.value} value={option.value}>
        {option.label}
      </option>
    ));
  return (
    <select
      {...rest}
      className={className}
      value={value}
      onChange={({ target }) => {
        const all = [...options, ...groups.flatMap((group) => group.options)];
        const option = all.find((o) => o.value === target.value);
        if (option) onChange(option.value);
      }}
    >
      {listed(options)}
      {groups.map(({ label, options: own }) =>
        own.length === 0 ? null : (
          <optgroup key={label} label={label}>
            {listed(own)}
          </optgroup>
        ),
      )}
    </select>
  );
}

/** The same with its name before it. */
export function LabeledSelect<T extends string>({ label, ...select }: SelectProps<T> & { label: string }) {
  return (
    <label className="labeled">
      <span>{label}</span>
      <Select {...select} />
    </label>
  );
}

/** What can be chosen, by its words. */
export function choices<T extends string>(words: Readonly<Record<T, string>>): { value: T; label: string }[] {
  return (Object.keys(words) as T[]).map((value) => ({ value, label: words[value] }));
}

/** Values that are called what they are. */
export function named<T extends string>(values: readonly T[]): { value: T; label: string }[] {
  return values.map((value) => ({ value, label: value }));
}

interface SegmentedProps<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; label: string; why?: string | null }[];
  onChange(value: T): void;
}

/** One of a few, side by side. */
export function Segmented<T extends string>({ label, value, options, onChange }: SegmentedProps<T>) {
  return (
    <ToggleGroup.Root
      type="single"
      className="segmented"
      aria-label={label}
      value={value}
      onValueChange={(next) => {
        const option = options.find((o) => o.value === next);
        if (option && !option.why) onChange(option.value);
      }}
    >
      {options.map((option) => (
        <ToggleGroup.Item
          key={option.value}
          value={option.value}
          {...(option.why ? { 'aria-disabled': true, title: option.why } : {})}
        >
          {option.label}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}

interface NumberFieldProps {
  value: number;
  /** Arrow keys move by this, Shift by ten times this. Absent: whole numbers. */
  step?: number | undefined;
  min: number;
  max: number;
  label: string;
  describedBy?: string | undefined;
  invalid?: boolean;
  className?: string;
  onChange(value: number): void;
}

/**
 * A number to type. What is typed counts once it is left or Enter is pressed, if it is a number; Escape gives it up.
 * A number out of bounds is taken as typed, so that the field can show the error.
 */
export function NumberField(props: NumberFieldProps) {
  const { value, step, min, max, label, describedBy, invalid, className, onChange } = props;
  const [draft, setDraft] = useState<string | null>(null);
  const commit = () => {
    if (draft === null) return;
    const typed = Number(draft.trim().replace(',', '.').replace('\u2212', '-'));
    if (draft.trim() !== '' && Number.isFinite(typed)) onChange(typed);
    setDraft(null);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter') commit();
    if (event.key === 'Escape' && draft !== null) {
      event.stopPropagation();
      setDraft(null);
    }
    const direction = event.key === 'ArrowUp' ? 1 : event.key === 'ArrowDown' ? -1 : 0;
    if (direction === 0) return;
    event.preventDefault();
    const size = (step ?? 1) * (event.shiftKey ? 10 : 1);
    const moved = Math.round((value + direction * size) / (step ?? 1)) * (step ?? 1);
    setDraft(null);
    onChange(Number(Math.min(max, Math.max(min, moved)).toFixed(10)));
  };
  return (
    <input
      className={className ?? 'numeric number-field'}
      inputMode="decimal"
      autoComplete="off"
      spellCheck={false}
      aria-label={label}
      aria-describedby={describedBy}
      aria-invalid={invalid || undefined}
      value={draft ?? formatSetting(value, step)}
      onChange={(event) => setDraft(event.target.value)}
      onFocus={(event) => event.target.select()}
      onBlur={commit}
      onKeyDown={onKeyDown}
    />
  );
}

interface LabeledNumberProps {
  label: string;
  /** The field's accessible name, where it is longer than the label before it. */
  name?: string;
  value: number;
  min: number;
  max: number;
  step?: number | undefined;
  invalid?: boolean;
  onChange(value: number): void;
}

/** A number of a tool's form, its label before it. */
export function LabeledNumber({ label, name = label, ...field }: LabeledNumberProps) {
  return (
    <label className="row small quiet tool-field">
      <span aria-hidden="true">{label}</span>
      <NumberField className="field mono short" label={name} {...field} />
    </label>
  );
}

interface ChipProps {
  /** What it is called, also where its words are shorter or more. */
  name: string;
  on: boolean;
  title?: string;
  /** Pressed, it is chosen or no longer. */
  onToggle?(): void;
  /** Takes it away. */
  onRemove?: (() => void) | undefined;
  /** Why it cannot be taken away now. */
  why?: string | null;
  children?: ReactNode;
}

/** One of several that are chosen. */
export function Chip({ name, on, title, onToggle, onRemove, why = null, children = name }: ChipProps) {
  return (
    <span className="chip" data-on={on || undefined}>
      {onToggle ? (
        <button type="button" aria-pressed={on} title={title} onClick={onToggle}>
          {children}
        </button>
      ) : (
        <span className="chip-name">{children}</span>
      )}
      {onRemove ? (
        <Button icon={CloseIcon} variant="quiet" why={why} aria-label={`Remove ${name}`} onClick={onRemove} />
      ) : null}
    </span>
  );
}
