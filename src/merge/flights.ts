/** Tensors under way at once, one per lane; they land in order. */
import type { WholeModel } from './delta-pipeline';
import type { Lane } from './lane';
import type { TensorPlan } from './plan';
import type { Emit, TensorStatistics } from './tensor-outcome';

export interface Flights {
  /** Lets the next tensor in order hand its bytes to `emit`; resolves when it has handed over all of them. */
  land(emit: Emit): Promise<TensorStatistics | undefined>;
  /** Ends what is under way; resolves when no lane is at work any more. */
  cancel(): Promise<void>;
}

interface Flight {
  /** Opens the way for its bytes. */
  open(emit: Emit): void;
  refuse(why: unknown): void;
  done: Promise<TensorStatistics | undefined>;
}

/**
 * Starts merging `tensors` from number `first` on: the i-th in lane i mod lanes, each when the one before it in its lane
 * has landed. Lanes come free in the order in which tensors land, so none waits while there is work for it.
 */
export function openFlights(
  lanes: readonly Lane[],
  tensors: readonly TensorPlan[],
  first: number,
  wholeModel: WholeModel | undefined,
): Flights {
  const under: Flight[] = [];
  let started = first;

  const start = () => {
    const index = started++;
    const lane = lanes[index % lanes.length]!;
    const turn = waitForTurn();
    const done = lane.merge(tensors[index]!, wholeModel, async (bytes) => (await turn.come)(bytes));
    done.catch(() => {}); // reported when it is to land
    under.push({ open: turn.open, refuse: turn.refuse, done });
    lane.lookAhead(tensors[index + lanes.length]);
  };
  for (const [l, lane] of lanes.entries()) {
    // the lane's own first tensor is read while the lanes before it are started
    const own = first + ((((l - first) % lanes.length) + lanes.length) % lanes.length);
    lane.lookAhead(tensors[own]);
  }

  return {
    async land(emit) {
      while (started < tensors.length && under.length < lanes.length) start();
      const flight = under[0]!;
      flight.open(emit);
      const statistics = await flight.done;
      under.shift();
      // the lane goes on while the caller finishes this tensor
      if (started < tensors.length) start();
      return statistics;
    },
    async cancel() {
      for (const { refuse } of under) refuse(new DOMException('The run has ended.', 'AbortError'));
      await Promise.allSettled(under.map(({ done }) => done));
    },
  };
}

function waitForTurn(): { come: Promise<Emit> } & Pick<Flight, 'open' | 'refuse'> {
  let open: Flight['open'] = () => {};
  let refuse: Flight['refuse'] = () => {};
  const come = new Promise<Emit>((resolve, reject) => {
    open = resolve;
    refuse = reject;
  });
  come.catch(() => {}); // nobody waits for it when the tensor itself fails
  return { come, open, refuse };
}
