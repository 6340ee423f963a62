import type { Load } from './measure/load.ts';
import type { CaseResult } from './report.ts';

/** What a case measures with. */
export interface Bench {
  readonly load: Load;
  readonly rounds: number;
  /** How long each request of each server is sent in each round. */
  readonly seconds: number;
  /** How often each server is started to measure how long that takes. */
  readonly starts: number;
  readonly tell: (progress: string) => void;
}

export interface BenchCase {
  readonly about: string;
  /** Compares with programs of `bench/package.json`. */
  readonly needsPeers: boolean;
  run(bench: Bench): Promise<CaseResult>;
}
