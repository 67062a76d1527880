import { useEffect, useState } from 'react';
import { addFiles } from '../state/models';
import { notifyError } from '../state/studio';
import { useStudio } from '../studio-context';
import { droppedFiles } from './local-files';

/** The whole page takes model folders and files; a frame says so while something is dragged over it. */
export function DropZone() {
  const studio = useStudio();
  const [over, setOver] = useState(false);
  useEffect(() => {
    // Every element under the pointer fires enter and leave: count them.
    let depth = 0;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;
    const onEnter = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth += 1;
      setOver(true);
    };
    const onOver = (event: DragEvent) => {
      if (hasFiles(event)) event.preventDefault();
    };
    const onLeave = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const onDrop = (event: DragEvent) => {
      if (!event.dataTransfer || !hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      droppedFiles(event.dataTransfer).then(
        (picked) => addFiles(studio, picked),
        (thrown: unknown) => notifyError(studio, thrown),
      );
    };
    addEventListener('dragenter', onEnter);
    addEventListener('dragover', onOver);
    addEventListener('dragleave', onLeave);
    addEventListener('drop', onDrop);
    return () => {
      removeEventListener('dragenter', onEnter);
      removeEventListener('dragover', onOver);
      removeEventListener('dragleave', onLeave);
      removeEventListener('drop', onDrop);
    };
  }, [studio]);
  return over ? (
    <div className="drop-frame">
      <p>
        <strong>Drop models, LoRAs, or a recipe</strong>
        <br />
        They are read in place; nothing is copied or uploaded.
      </p>
    </div>
  ) : null;
}
