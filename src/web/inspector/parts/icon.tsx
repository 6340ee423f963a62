import type { IconNode } from 'lucide';
import { h } from 'preact';

/** A picture of the icon set. Screen readers skip it, because the text beside it says the same. */
export function Icon({ of }: { readonly of: IconNode }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {of.map(([tag, attributes], index) => h(tag, { key: index, ...attributes }))}
    </svg>
  );
}
