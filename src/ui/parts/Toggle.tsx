import { Switch } from 'radix-ui';
import { useId } from 'react';

interface ToggleProps {
  label: string;
  title: string;
  checked: boolean;
  why?: string | null;
  onChange(checked: boolean): void;
}

/** A switch with its name beside it. */
export function Toggle({ label, title, checked, why, onChange }: ToggleProps) {
  const id = useId();
  return (
    <label className="row tool-toggle" htmlFor={id} title={why ?? title} data-off={why ? '' : undefined}>
      <Switch.Root
        id={id}
        className="switch"
        checked={checked && !why}
        onCheckedChange={(next) => !why && onChange(next)}
        {...(why ? { 'aria-disabled': true, 'aria-description': why } : { 'aria-description': title })}
      >
        <Switch.Thumb className="switch-thumb" />
      </Switch.Root>
      <span>{label}</span>
    </label>
  );
}
