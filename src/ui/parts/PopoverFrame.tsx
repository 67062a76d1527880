import { cloneElement, lazy, type ReactElement, type ReactNode, Suspense, useState } from 'react';
import { notify } from '../state/studio';
import { useStudio } from '../studio-context';
import { PART_MISSING, PartBoundary } from './PartBoundary';

const OpenPopover = lazy(() => import('./OpenPopover').then((m) => ({ default: m.OpenPopover })));

export interface PopoverFrameProps {
  /** Name of the opened part. */
  label: string;
  /** The button that opens it. */
  trigger: ReactElement<{ onClick?(): void }>;
  /** Beside the button, instead of below it. */
  beside?: boolean;
  className?: string;
  onOpenChange?(): void;
  children: ReactNode;
}

/** A part that opens at a button, above the page. */
export function PopoverFrame(props: PopoverFrameProps) {
  const { trigger, onOpenChange } = props;
  const studio = useStudio();
  const [pressed, setPressed] = useState(false);
  const onClick = () => {
    setPressed(true);
    onOpenChange?.();
  };
  const onMissing = () => {
    setPressed(false);
    notify(studio, 'error', PART_MISSING.title, PART_MISSING.hint);
  };
  return pressed ? (
    <PartBoundary onMissing={onMissing}>
      <Suspense fallback={trigger}>
        <OpenPopover {...props} />
      </Suspense>
    </PartBoundary>
  ) : (
    cloneElement(trigger, { onClick, 'aria-haspopup': 'dialog', 'aria-expanded': false } as object)
  );
}
