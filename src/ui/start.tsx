import { createRoot } from 'react-dom/client';
import { App } from './App';
import { bootStudio } from './state/boot';
import { createStudio, type Studio, type StudioWorker } from './state/studio';
import './styles/tokens.css';
import './styles/base.css';
import './styles/controls.css';
import './styles/overlays.css';
import './styles/runbar.css';
import './styles/workbench.css';
import './styles/recipe.css';
import './styles/charts.css';
import './styles/layers.css';
import './styles/screens.css';
import './styles/run-output.css';
import './styles/inspector.css';

/** Draws the studio into an element, with this worker behind it; returns the studio and a way to take it down. */
export function startStudio(worker: StudioWorker, element: HTMLElement): { studio: Studio; stop(): void } {
  const studio = createStudio(worker);
  const stopBoot = bootStudio(studio);
  const root = createRoot(element);
  root.render(<App studio={studio} />);
  return {
    studio,
    stop() {
      stopBoot();
      root.unmount();
    },
  };
}
