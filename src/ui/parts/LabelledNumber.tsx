import { NumberField } from './NumberField';

interface LabelledNumberProps {
  label: string;
  value: number;
  min: number;
  max: number;
  step?: number | undefined;
  invalid?: boolean;
  onChange(value: number): void;
}

/** A number of a tool's form, its name before it. */
export function LabelledNumber({ label, ...field }: LabelledNumberProps) {
  return (
    <div className="row tool-field">
      <span aria-hidden="true">{label}</span>
      <NumberField className="field mono" label={label} {...field} />
    </div>
  );
}
