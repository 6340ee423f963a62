import type { ComponentChildren } from 'preact';
import type { Tone } from '../names.ts';
import { ExactTime } from './time.tsx';

export interface Step {
  readonly title: ComponentChildren;
  /** `next` for a step that has not happened. */
  readonly tone: Tone | 'next';
  readonly atMs?: number | null | undefined;
  readonly note?: ComponentChildren;
}

/** Steps one below the other, oldest first. */
export function Timeline({ steps, label }: { readonly steps: readonly Step[]; readonly label: string }) {
  return (
    <ol class="timeline" aria-label={label}>
      {steps.map(({ title, tone, atMs, note }, index) => (
        <li key={index} class={tone}>
          <div>{title}</div>
          {atMs !== undefined && atMs !== null && (
            <div class="when">
              <ExactTime ms={atMs} />
            </div>
          )}
          {note !== undefined && <div class="small">{note}</div>}
        </li>
      ))}
    </ol>
  );
}
