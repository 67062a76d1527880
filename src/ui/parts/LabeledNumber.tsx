import { NumberField } from './NumberField';

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
      <NumberField className="field mono" label={name} {...field} />
    </label>
  );
}
