// The page of vnc-web: a list of VMs, and the screen or the console of one of them.
import RFB from './vendor/novnc/core/rfb.js';
import { Terminal } from './vendor/xterm/xterm.mjs';

const protocol = 'plain.kubevirt.io';
const $ = (id) => document.getElementById(id);
let shown = null; // what ends the stream that is shown

// address is the URL of a part of the API of this program. The page's own URL has the token.
function address(vm, verb) {
  return new URL(`api/${encodeURIComponent(vm.namespace)}/${encodeURIComponent(vm.name)}/${verb}`, document.baseURI);
}

function stream(vm, verb) {
  const url = address(vm, verb);
  url.protocol = 'ws:';
  return url.href;
}

function note(text) { $('note').textContent = text; }

async function call(vm, verb) {
  const answer = await fetch(address(vm, verb), { method: 'POST' });
  note(answer.ok ? '' : `${verb} ${vm.name}: ${await answer.text()}`);
  await refresh();
}

function close() {
  if (shown) shown();
  shown = null;
  $('screen').replaceChildren();
  $('console').replaceChildren();
  $('view').hidden = true;
}

function show(vm, what) {
  close();
  note('');
  $('title').textContent = `${what} of ${vm.namespace}/${vm.name}`;
  $('view').hidden = false;
}

function openScreen(vm) {
  show(vm, 'Screen');
  const rfb = new RFB($('screen'), stream(vm, 'screen'), { wsProtocols: [protocol] });
  rfb.scaleViewport = true;
  const closed = () => note(`The screen of ${vm.name} was closed.`);
  rfb.addEventListener('disconnect', closed);
  shown = () => { rfb.removeEventListener('disconnect', closed); rfb.disconnect(); };
  rfb.focus();
}

function openConsole(vm) {
  show(vm, 'Console');
  const terminal = new Terminal({ cursorBlink: true });
  const socket = new WebSocket(stream(vm, 'console'), [protocol]);
  socket.binaryType = 'arraybuffer';
  const bytes = new TextEncoder();
  terminal.open($('console'));
  const early = []; // what is typed before the console is open
  const send = (data) => (socket.readyState === WebSocket.CONNECTING ? early.push(data) : socket.send(data));
  terminal.onData((text) => send(bytes.encode(text)));
  terminal.onBinary((text) => send(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  socket.onopen = () => early.forEach((data) => socket.send(data));
  socket.onmessage = (m) => terminal.write(new Uint8Array(m.data));
  socket.onclose = () => note(`The console of ${vm.name} was closed.`);
  shown = () => { socket.onclose = null; socket.close(1000); terminal.dispose(); };
  terminal.focus();
}

function button(text, action, enabled) {
  const b = document.createElement('button');
  b.textContent = text;
  b.disabled = !enabled;
  b.onclick = action;
  return b;
}

// row shows what is in the cluster as text, never as HTML.
function row(vm) {
  const r = document.createElement('tr');
  for (const text of [vm.namespace, vm.name, vm.state, vm.node ?? '']) {
    r.insertCell().textContent = text;
  }
  r.insertCell().append(
    button('Screen', () => openScreen(vm), vm.running),
    button('Console', () => openConsole(vm), vm.running),
    button('Start', () => call(vm, 'start'), vm.startable),
    button('Stop', () => call(vm, 'stop'), vm.stoppable),
    button(vm.paused ? 'Unpause' : 'Pause', () => call(vm, vm.paused ? 'unpause' : 'pause'), vm.running),
  );
  return r;
}

let before = '';
async function refresh() {
  try {
    const answer = await fetch('api/vms');
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    if (text !== before) $('list').replaceChildren(...JSON.parse(text).map(row));
    before = text;
  } catch (e) {
    note(`List the VMs: ${e.message}`);
  }
}

$('close').onclick = close;
await refresh();
setInterval(refresh, 2000);
