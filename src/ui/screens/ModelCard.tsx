import { useEffect, useState } from 'react';
import { bytesOf, contentOf, fileIn, folderIn } from '../../platform';
import { CopyButton } from '../parts/CopyButton';
import { Section } from '../parts/Section';
import type { RunState } from '../state/run-state';
import { notifyError, type Studio } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

const CARD = 'README.md';

/** The model card of the finished run, as the text it is: never drawn as HTML. */
export function ModelCard() {
  const studio = useStudio();
  const run = useStudioState((s) => (s.run?.status === 'done' ? s.run : null));
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

const textOf = async (file: File) => new TextDecoder().decode(await bytesOf(file));

/** Null where it cannot be had any more: a folder that is not open, an output that was deleted. */
async function readCard(studio: Studio, run: RunState): Promise<string | null> {
  const { kind, name } = run.destination;
  if (!run.outputFiles.includes(CARD)) return null;
  if (kind === 'folder') {
    const { folder } = studio.transient;
    const file =
      folder &&
      (await folderIn(folder, name)
        .then((f) => fileIn(f, CARD))
        .catch(() => null));
    return file ? textOf(await contentOf(file)) : null;
  }
  const { outputs } = await studio.worker.cache();
  if (!outputs.some((o) => o.name === name && o.complete)) return null;
  return textOf(await studio.worker.outputFile(name, CARD));
}
