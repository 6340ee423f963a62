import type { ComponentChildren } from 'preact';
import { chainOf, inWords, type Tone, toneOf, toneOfHttp } from '../names.ts';

export function Label({ tone = 'none', children }: { readonly tone?: Tone; children: ComponentChildren }) {
  return <span class={`label ${tone}`}>{children}</span>;
}

/** A status of the API in words, in its color. */
export function Status({ of }: { readonly of: string }) {
  return <Label tone={toneOf(of)}>{inWords(of)}</Label>;
}

/** The status of a response. */
export function HttpStatus({ of }: { readonly of: number }) {
  return <Label tone={toneOfHttp(of)}>{of === 0 ? 'no response' : of}</Label>;
}

/** A chain by its name, with its mark. */
export function Chain({ id }: { readonly id: string }) {
  const { name, color } = chainOf(id);
  return (
    <span class="chain" title={id}>
      <i aria-hidden="true" style={{ background: color }}>
        {name[0]}
      </i>
      {name}
    </span>
  );
}

/** The seats of a quorum: taken ones, those that are still needed, and the others. */
export function Seats({ size, threshold, taken = 0 }: { size: number; threshold: number; taken?: number }) {
  return (
    <span class="seats">
      {Array.from({ length: Math.min(size, 12) }, (_, seat) => (
        <i key={seat} aria-hidden="true" class={seat < taken ? 'taken' : seat < threshold ? 'needed' : ''} />
      ))}
      {threshold} of {size}
    </span>
  );
}
