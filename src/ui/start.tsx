import { createRoot } from 'react-dom/client';
import type { EngineApi } from '../engine/protocol';
import { App } from './App';
import { bootStudio } from './state/boot';
import { createStudio, type Studio } from './state/studio';
import './styles/tokens.css';
import './styles/base.css';
import './styles/controls.css';
import './styles/workbench.css';
import './styles/recipe.css';
import './styles/charts.css';
import './styles/screens.css';

/** Draws the studio into an element, with this engine behind it; returns the studio and a way to take it down. */
export function startStudio(engine: EngineApi, element: HTMLElement): { studio: Studio; stop(): void } {
  const studio = createStudio(engine);
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
