import type { PhaseSeconds, WorkSeconds } from './job';

/** Where the time of a run goes, in the order it passes: its phases, and the work on tensors in the order of bytes. */
const STAGES = [
  'opening',
  'download',
  'hashing',
  'checking',
  'calibration',
  'read',
  'upload',
  'compute',
  'readback',
  'write',
  'idle',
  'finishing',
] as const;
type Stage = (typeof STAGES)[number];

/** Times of a report or a progress message. */
export interface TimesSpent {
  stages: WorkSeconds;
  phases?: PhaseSeconds;
}

interface StageShare {
  stage: Stage;
  /** Wall clock; where several work at once, their part of it. */
  seconds: number;
  /** Of all of the time, in [0, 1]; 0 while nothing was measured. */
  share: number;
}

/**
 * All of the time of a run, part by part. While tensors are merged several stages may be at work at once: each has its
 * part of the wall clock; what none of them was at work in is idle. Without phases (older reports), the stages alone.
 */
export function timeShares({ stages, phases }: TimesSpent): StageShare[] {
  const busy = stages.read + stages.upload + stages.compute + stages.readback + stages.write;
  const wall = phases ? (phases.merging ?? 0) + (phases.measuring ?? 0) : busy;
  // more than the wall clock where several work at once
  const part = busy > wall ? wall / busy : 1;
  const { opening = 0, planning = 0, downloading = 0, hashing = 0, checking = 0 } = phases ?? {};
  const { writing = 0, calibrating = 0, searching = 0, finishing = 0 } = phases ?? {};
  const seconds: Record<Stage, number> = {
    opening: opening + planning,
    download: downloading,
    hashing,
    checking,
    calibration: writing + calibrating + searching,
    read: stages.read * part,
    upload: stages.upload * part,
    compute: stages.compute * part,
    readback: stages.readback * part,
    write: stages.write * part,
    idle: Math.max(0, wall - busy),
    finishing,
  };
  const total = STAGES.reduce((sum, stage) => sum + seconds[stage], 0);
  const always: readonly Stage[] = ['read', 'upload', 'compute', 'readback', 'write'];
  return STAGES.filter((stage) => seconds[stage] > 0 || always.includes(stage)).map((stage) => ({
    stage,
    seconds: seconds[stage],
    share: total > 0 ? seconds[stage] / total : 0,
  }));
}
