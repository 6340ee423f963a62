import { signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Palette } from './palette.tsx';

const isOpen = signal(false);

export function openPalette(): void {
  isOpen.value = true;
}

addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  isOpen.value = !isOpen.value;
});

/** The dialog that finds pages, wallets, requests and operations, and runs actions. Ctrl+K or Cmd+K opens it. */
export function PaletteDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useSignal('');
  const at = useSignal(0);
  const activeId = useSignal<string | undefined>(undefined);
  const onKeyDown = useRef<((event: KeyboardEvent) => void) | undefined>(undefined);
  // The palette's code is loaded when the dialog is first opened. The field is drawn before that, so that no letter is
  // lost.
  const content = useSignal<typeof Palette | undefined>(undefined);
  useLayoutEffect(() => {
    if (isOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen.value]);
  useEffect(() => {
    if (!isOpen.value) {
      text.value = '';
      at.value = 0;
    }
    if (!isOpen.value || content.value !== undefined) return;
    import('./palette.tsx').then(
      (loaded) => {
        content.value = loaded.Palette;
      },
      () => {
        // The sandbox does not respond, as the foot of the navigation shows. Opening the dialog again retries.
        isOpen.value = false;
      },
    );
  }, [isOpen.value]);
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find or do something"
      onClose={() => {
        isOpen.value = false;
      }}
      onClick={(event) => {
        if (event.target === dialog.current) isOpen.value = false;
      }}
    >
      {isOpen.value && (
        <input
          type="text"
          role="combobox"
          aria-label="Find pages, wallets, requests and operations, or do something"
          aria-expanded="true"
          aria-controls="finds"
          aria-activedescendant={activeId}
          placeholder="Find a page, wallet, request or operation, or do something"
          autocomplete="off"
          spellcheck={false}
          autoFocus
          value={text}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
            at.value = 0;
          }}
          onKeyDown={(event) => onKeyDown.current?.(event)}
        />
      )}
      {isOpen.value && content.value !== undefined && (
        <content.value isOpen={isOpen} text={text} at={at} activeId={activeId} onKeyDown={onKeyDown} />
      )}
    </dialog>
  );
}
