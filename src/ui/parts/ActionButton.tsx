import type { ComponentProps } from 'react';
import { type Action, perform } from '../state/actions';
import { useStudio, useStudioState } from '../studio-context';
import { Button } from './Button';

interface ActionButtonProps extends Omit<ComponentProps<typeof Button>, 'why' | 'onClick'> {
  of: Action;
}

/** The button of an action, called by its name unless it says otherwise. */
export function ActionButton({ of, children = of.name, ...rest }: ActionButtonProps) {
  const studio = useStudio();
  const why = useStudioState((s) => of.whyNot?.(s) ?? null);
  return (
    <Button why={why} onClick={() => void perform(studio, of)} {...rest}>
      {children}
    </Button>
  );
}
