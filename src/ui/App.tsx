import { Tooltip } from 'radix-ui';
import { Component, type ErrorInfo, type ReactNode } from 'react';
import { errorReport } from '../errors';
import { ErrorCard } from './parts/ErrorCard';
import type { Studio } from './state/studio';
import { StudioProvider } from './studio-context';
import { Workbench } from './Workbench';

/** The studio's page. */
export function App({ studio }: { studio: Studio }) {
  return (
    <StudioProvider studio={studio}>
      <FaultBoundary>
        <Tooltip.Provider delayDuration={350} skipDelayDuration={150}>
          <Workbench />
        </Tooltip.Provider>
      </FaultBoundary>
    </StudioProvider>
  );
}

/** A fault in drawing: the page says so and offers what a report needs, instead of going blank. */
class FaultBoundary extends Component<{ children: ReactNode }, { thrown: unknown }> {
  override state: { thrown: unknown } = { thrown: null };

  static getDerivedStateFromError(thrown: unknown) {
    return { thrown };
  }

  override componentDidCatch(thrown: unknown, info: ErrorInfo) {
    console.error(thrown, info.componentStack);
  }

  override render() {
    if (this.state.thrown === null) return this.props.children;
    return (
      <div className="fault">
        <h1>The studio stopped drawing</h1>
        <p className="quiet">Files already saved are safe. Reload the page to go on.</p>
        <ErrorCard error={errorReport(this.state.thrown)} />
      </div>
    );
  }
}
