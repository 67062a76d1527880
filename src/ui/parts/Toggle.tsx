import { Switch } from 'radix-ui';
import type { ComponentProps } from 'react';

interface ToggleProps extends ComponentProps<typeof Switch.Root> {
  checked: boolean;
  /** Some of what it stands for is off. */
  mixed?: boolean;
  onCheckedChange(checked: boolean): void;
}

/** A switch. */
export function Toggle({ mixed = false, ...rest }: ToggleProps) {
  return (
    <Switch.Root {...rest} className="switch" data-mixed={(rest.checked && mixed) || undefined}>
      <Switch.Thumb className="switch-thumb" />
    </Switch.Root>
  );
}
