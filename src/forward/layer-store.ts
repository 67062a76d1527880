/** The layers of a model on the device, as they come and go. */

/**
 * A model's weights in the order they are used, in layers: a few stay on the device, the others come and go, at most
 * two at a time, the next one being read while the current one is at work.
 */
export interface Layer {
  close(): void;
}

export interface LayerStore<T extends Layer> {
  readonly count: number;
  /** The layer, loaded if it is not there; begins to load the one after it. */
  take(index: number, signal?: AbortSignal): Promise<T>;
  /** Lets go of a layer that does not stay. */
  release(index: number): void;
  /** The layers that are there or on their way. */
  loaded(): [index: number, layer: Promise<T>][];
  /** Lets go of a layer, which is loaded anew when it is next taken. */
  drop(index: number): void;
  /** Lets go of every layer that does not stay, and of what is being read ahead. */
  rest(): void;
  close(): void;
}

/**
 * @param stays whether a layer stays once it is loaded
 * @param ahead whether the next layer may be read while another is at work
 */
export function createLayerStore<T extends Layer>(
  count: number,
  load: (index: number, signal?: AbortSignal) => Promise<T>,
  stays: (index: number) => boolean,
  ahead: boolean,
): LayerStore<T> {
  const layers = new Map<number, Promise<T>>();
  const begin = (index: number, signal?: AbortSignal) => {
    const known = layers.get(index);
    if (known) return known;
    const layer = load(index, signal);
    layers.set(index, layer);
    // reported when the layer is taken; forgotten, so that it can be tried again
    layer.catch(() => layers.delete(index));
    return layer;
  };
  const drop = (index: number) => {
    const layer = layers.get(index);
    layers.delete(index);
    layer?.then(
      (loaded) => loaded.close(),
      () => {},
    );
  };
  return {
    count,
    async take(index, signal) {
      const layer = await begin(index, signal);
      if (ahead && index + 1 < count) begin(index + 1, signal).catch(() => {});
      return layer;
    },
    release(index) {
      if (!stays(index)) drop(index);
    },
    loaded: () => [...layers],
    drop,
    rest() {
      for (const index of [...layers.keys()]) if (!stays(index)) drop(index);
    },
    close() {
      for (const index of [...layers.keys()]) drop(index);
    },
  };
}
