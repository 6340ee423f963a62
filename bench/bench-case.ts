import type { Load } from './measure/load.ts';
import type { CaseResult } from './report.ts';

/** The settings and tools of a case. */
export interface Bench {
  readonly load: Load;
  readonly rounds: number;
  /** Duration of each request on each server in each round. */
  readonly seconds: number;
  /** How long each request is sent before the rounds, at most: until it becomes no cheaper. */
  readonly warmUpSeconds: number;
  /** How often each server is started to measure its start-up time. */
  readonly starts: number;
  readonly report: (progress: string) => void;
}

export interface BenchCase {
  readonly about: string;
  /** Whether the case compares with programs of `bench/package.json`. */
  readonly needsPeers: boolean;
  run(bench: Bench): Promise<CaseResult>;
}
