import { useEffect, useState } from 'react';
import { CopyButton } from '../parts/CopyButton';
import { Section } from '../parts/Section';
import type { RunState } from '../state/runs';
import { currentRun } from '../state/runs';
import { notifyError, type Studio } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

const CARD = 'README.md';

/** The model card of the finished run, as the text it is: never drawn as HTML. */
export function ModelCard() {
  const studio = useStudio();
  const run = useStudioState((s) => (currentRun(s)?.status === 'done' ? currentRun(s) : null));
  const [card, setCard] = useState<string | null>(null);
  useEffect(() => {
    setCard(null);
    if (!run) return;
    let gone = false;
    readCard(studio, run).then(
      (text) => {
        if (!gone) setCard(text);
      },
      (thrown: unknown) => notifyError(studio, thrown),
    );
    return () => {
      gone = true;
    };
  }, [studio, run]);
  if (card === null) return null;
  return (
    <Section title="Model card" aside={<span className="small quiet">{CARD}, written with the weights</span>}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too. */}
      <section className="yaml model-card" tabIndex={0} aria-label="Text of the model card">
        <pre>{card}</pre>
      </section>
      <div className="row">
        <CopyButton text={() => card} />
      </div>
    </Section>
  );
}

/** Null where it cannot be had any more: a folder that is not open, an output that was deleted. */
async function readCard(studio: Studio, run: RunState): Promise<string | null> {
  const { kind, name } = run.destination;
  if (!run.outputFiles.includes(CARD)) return null;
  if (kind === 'folder') {
    const folder = await studio.transient.folder?.getDirectoryHandle(name).catch(() => null);
    const file = await folder?.getFileHandle(CARD).catch(() => null);
    return file ? (await file.getFile()).text() : null;
  }
  const { outputs } = await studio.worker.cache();
  if (!outputs.some((o) => o.name === name && o.complete)) return null;
  return (await studio.worker.outputFile(name, CARD)).text();
}
