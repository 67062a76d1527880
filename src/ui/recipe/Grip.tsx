import { type KeyboardEvent, useEffect, useRef } from 'react';
import { Button } from '../parts/Button';
import { GripIcon } from '../parts/icons';

interface GripProps {
  label: string;
  /** Place of its card in the list, from 0. */
  at: number;
  moving: boolean;
  onMove(to: number): void;
  onMoving(moving: boolean): void;
}

/** Moves its card among the others: dragged, or by the arrow keys. The others make way at once. */
export function Grip({ label, at, moving, onMove, onMoving }: GripProps) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!moving) return;
    // on the window: a card that changes its place in the page would lose the pointer
    const drag = ({ clientY }: PointerEvent) => {
      const cards = [...(button.current?.closest('ul')?.children ?? [])];
      // its place is behind every other card whose middle it has passed
      const passed = cards.filter((card, i) => {
        const { top, height } = card.getBoundingClientRect();
        return i !== at && top + height / 2 < clientY;
      });
      if (passed.length !== at) onMove(passed.length);
    };
    const end = () => onMoving(false);
    addEventListener('pointermove', drag);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
    return () => {
      removeEventListener('pointermove', drag);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
    };
  }, [moving, at, onMove, onMoving]);
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowUp' ? -1 : event.key === 'ArrowDown' ? 1 : 0;
    if (by === 0) return;
    event.preventDefault();
    onMove(at + by);
  };
  return (
    <Button
      ref={button}
      variant="quiet"
      iconOnly
      className="card-grip"
      aria-label={label}
      title="Drag, or press the arrow keys, to change the order"
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.focus();
        onMoving(true);
      }}
    >
      <GripIcon />
    </Button>
  );
}
