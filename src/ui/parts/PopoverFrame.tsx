import { cloneElement, lazy, Suspense, useState } from 'react';
import { notify } from '../state/studio';
import { useStudio } from '../studio-context';
import { PART_MISSING, PartBoundary } from './Message';
import type { PopoverFrameProps } from './OpenPopover';

const OpenPopover = lazy(() => import('./OpenPopover').then((m) => ({ default: m.OpenPopover })));

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
