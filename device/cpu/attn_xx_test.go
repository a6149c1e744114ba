package cpu
import ("testing";"fmt";"os";"antiphase/device";"antiphase/tensor")
func TestXX(t *testing.T){
 if os.Getenv("ZZ")=="" {t.Skip()}
 c:=newCase(1); defer c.cpu.Close()
 for _,cs:=range []struct{n,last int}{{1,4095},{512,511}} {
 for _,g:=range []geometry{{AttnShape: device.AttnShape{B:1,T:cs.n,Heads:12,Groups:12,D:64,DV:64},maps:1,keys:1},{AttnShape: device.AttnShape{B:1,T:cs.n,Heads:6,Groups:6,D:64,DV:128},maps:2,keys:2},{AttnShape: device.AttnShape{B:1,T:cs.n,Heads:12,Groups:3,D:64,DV:64},maps:2,keys:1}} {
  p:=c.problem(g)
  k,v:=c.random(4096,g.Groups*g.keys*g.D,0,1),c.random(4096,g.Groups*g.DV,0,1)
  tb:=make([]int32,256); for i:=range tb {tb[i]=int32(i)}
  tt:=c.ints(tb)
  ca:=&device.Cache{K:k.x,V:v.x,Table:tt.x.Reshape(1,256),PageSize:16}
  slots:=make([]int32,cs.n); pos:=make([]int32,cs.n); tot:=0
  for i:=range pos {pos[i]=int32(cs.last-cs.n+1+i); tot+=int(pos[i])+1}
  s,q:=c.ints(slots),c.ints(pos)
  best:=1e9
  for it:=0;it<10;it++{ t0:=cpuTime(); for j:=0;j<1+20/cs.n;j++{p.attend(c.cpu,func(t twin) tensor.Tensor{return t.x},ca,s.x,q.x,0,cs.n)}; if d:=cpuTime()-t0;d<best{best=d}}
  best/=float64(1+20/cs.n)
  fl:=float64(tot)*float64(g.Heads*g.maps)*float64(g.D+g.DV)*2
  by:=float64(tot)*float64(g.Groups*(g.keys*g.D+g.DV))*4
  fmt.Printf("n=%d last=%d %v: %.3f ms %.1f GF %.1f GB/s\n",cs.n,cs.last,g,best*1e3,fl/best/1e9,by/best/1e9)
 }}
}
