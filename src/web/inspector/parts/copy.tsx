import { useSignal } from '@preact/signals';
import { Check, Copy as CopyIcon } from 'lucide';
import type { ComponentChildren } from 'preact';
import { shortened } from '../names.ts';
import { Icon } from './icon.tsx';

const SHOWN_MS = 1500;

/** A button that copies text. `what` names the text for a screen reader; `children` is the title of a wide button. */
export function Copy(props: {
  readonly text: string | (() => string);
  readonly what: string;
  readonly children?: string;
}) {
  const { text, what, children } = props;
  const state = useSignal<'idle' | 'done' | 'refused'>('idle');
  const copy = async (event: MouseEvent): Promise<void> => {
    event.stopPropagation();
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
      state.value = 'done';
    } catch {
      state.value = 'refused';
    }
    setTimeout(() => {
      state.value = 'idle';
    }, SHOWN_MS);
  };
  const note = { idle: '', done: 'Copied', refused: 'The browser does not allow it' }[state.value];
  return (
    <>
      <button
        type="button"
        class={`${children === undefined ? 'copy' : ''} ${state.value}`}
        title={note || `Copy ${what}`}
        aria-label={`Copy ${what}`}
        onClick={copy}
      >
        <Icon of={state.value === 'done' ? Check : CopyIcon} />
        {children !== undefined && (note || children)}
      </button>
      <span class="hidden" role="status">
        {note}
      </span>
    </>
  );
}

/**
 * A shortened id, hash or address that can be copied. With `children`, a name is shown in its place; with `href`, it is
 * a link.
 */
export function Named(props: {
  readonly id: string;
  readonly what: string;
  readonly href?: string | undefined;
  readonly children?: ComponentChildren;
}) {
  const { id, what, href, children } = props;
  const shown = children ?? <code>{shortened(id)}</code>;
  return (
    <span class="named" title={id}>
      {href === undefined ? shown : <a href={href}>{shown}</a>}
      <Copy text={id} what={what} />
    </span>
  );
}
