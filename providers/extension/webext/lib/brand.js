// What the extension looks like and is called: all of it stands in brand.json.
let read;

export function brand() {
  read ??= fetch(chrome.runtime.getURL('brand.json')).then(answer => answer.json());
  return read;
}

// paint gives a page of the extension the brand's colours, light or dark as the person has it.
export async function paint(doc) {
  const b = await brand();
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const apply = () => {
    for (const [name, value] of Object.entries(dark.matches ? b.dark : b.light)) doc.documentElement.style.setProperty(`--${name.replace('_', '-')}`, value);
  };
  dark.addEventListener('change', apply);
  apply();
  for (const el of doc.querySelectorAll('[data-brand="name"]')) el.textContent = b.name;
  for (const el of doc.querySelectorAll('img[data-brand="icon"]')) el.src = chrome.runtime.getURL(b.icons['48']);
  return b;
}
