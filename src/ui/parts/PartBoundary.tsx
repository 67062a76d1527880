import { Component, type ReactNode } from 'react';
import { Button } from './Button';
import { Message } from './Message';

/** Messages of browsers and the build about a script or a style sheet that failed to load. */
const NOT_ARRIVED =
  /dynamically imported module|preload CSS|Importing a module script failed|error loading dynamically/i;

interface PartBoundaryProps {
  children: ReactNode;
  /** Called instead of showing words in place of the part: a dialog closes and reports elsewhere. */
  onMissing?: () => void;
}

/** A part of the page that loads on first use. If it fails, the rest of the page stays. */
export class PartBoundary extends Component<PartBoundaryProps, { thrown: unknown }> {
  override state: { thrown: unknown } = { thrown: null };

  static getDerivedStateFromError(thrown: unknown) {
    return { thrown };
  }

  override componentDidCatch(thrown: unknown) {
    if (!notArrived(thrown)) return;
    this.props.onMissing?.();
  }

  override render() {
    const { thrown } = this.state;
    if (thrown === null) return this.props.children;
    if (!notArrived(thrown)) throw thrown;
    if (this.props.onMissing) return null;
    return (
      <div className="screen">
        <Message
          tone="error"
          {...PART_MISSING}
          actions={<Button onClick={() => location.reload()}>Reload</Button>}
          live
        />
      </div>
    );
  }
}

export const PART_MISSING = {
  title: 'A part of the page did not arrive.',
  hint: 'Look at the connection, then reload the page: the recipe is kept.',
} as const;

function notArrived(thrown: unknown): boolean {
  return thrown instanceof Error && NOT_ARRIVED.test(thrown.message);
}
